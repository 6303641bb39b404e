// A memory with one port to write and one to read.
//
// Latency: what `read_address` is in one clock, `read_data` holds in the next.
// Initiation interval: 1, for reads and writes alike.
// Hazards: an address that is written while it is read gives what was there BEFORE. Whoever writes what it has read keeps its
// last write beside it and takes that in place of a read of the same address in the clock after.
module laps_ram #(
    parameter int unsigned WIDTH = 24,
    parameter int unsigned ADDRESS = 10
) (
    input  logic               clk,
    input  logic               write,
    input  logic [ADDRESS-1:0] write_address,
    input  logic [WIDTH-1:0]   write_data,
    input  logic [ADDRESS-1:0] read_address,
    output logic [WIDTH-1:0]   read_data
`ifdef FORMAL
    ,
    input  logic [ADDRESS-1:0] watch,
    output logic [WIDTH-1:0]   watched
`endif
);
    logic [WIDTH-1:0] memory[1 << ADDRESS];

    always_ff @(posedge clk) begin
        if (write) memory[write_address] <= write_data;
        read_data <= memory[read_address];
    end

`ifdef FORMAL
    assign watched = memory[watch];
`endif
endmodule
