// Finds the destination of an IPv4 address: exact match in a table of two ways, which the host fills. The host chooses the way; an
// entry takes the place of the one that lies there.
//
// Latency: 2 clocks from `in_valid` to `out_valid`, in order. Initiation interval: 1.
// Hazards: an address that is looked up in the clock in which its place is written finds what was there before. After `reset` the
// table is empty, in 2^SEARCH clocks with `ready` low.
module laps_search #(
    // Places of a way are 2^SEARCH.
    parameter int unsigned SEARCH = 10,
    parameter int unsigned DESTINATION = 10
) (
    input  logic                   clk,
    input  logic                   reset,
    output logic                   ready,

    input  logic                   write,
    input  logic                   write_way,
    // Otherwise the place is emptied.
    input  logic                   write_up,
    input  logic [31:0]            write_address,
    input  logic [DESTINATION-1:0] write_destination,

    input  logic                   in_valid,
    input  logic [31:0]            in_address,
    output logic                   out_valid,
    output logic                   out_found,
    output logic [DESTINATION-1:0] out_destination
);
    // Addresses that share a place in one way mostly do not in the other.
    function automatic logic [SEARCH-1:0] place(input logic [31:0] address, input logic way);
        place = '0;
        for (int i = 0; i < 32; i++) begin
            if (way) place[(3*i+i/SEARCH)%SEARCH] = place[(3*i+i/SEARCH)%SEARCH] ^ address[i];
            else place[i%SEARCH] = place[i%SEARCH] ^ address[i];
        end
    endfunction

    logic              clearing;
    logic [SEARCH-1:0] clear_place;
    assign ready = !clearing;
    always_ff @(posedge clk) begin
        if (reset) begin
            clearing <= 1'b1;
            clear_place <= '0;
        end else if (clearing) begin
            clear_place <= clear_place + 1'b1;
            clearing <= clear_place != '1;
        end
    end

    logic [31:0]              address;
    logic                     valid;
    logic [1:0]               hits;
    logic [2*DESTINATION-1:0] destinations;
    generate
        for (genvar w = 0; w < 2; w++) begin : way
            logic [32+DESTINATION:0] entry;
            laps_ram #(.WIDTH(33 + DESTINATION), .ADDRESS(SEARCH)) places (
                .clk,
                .write(clearing || (write && write_way == w)),
                .write_address(clearing ? clear_place : place(write_address, w)),
                .write_data(clearing ? '0 : {write_up, write_address, write_destination}),
                .read_address(place(in_address, w)),
                .read_data(entry)
`ifdef FORMAL
                ,
                .watch('0),
                .watched()
`endif
            );
            assign hits[w] = entry[32+DESTINATION] && entry[31+DESTINATION:DESTINATION] == address;
            assign destinations[w*DESTINATION+:DESTINATION] = entry[DESTINATION-1:0];
        end
    endgenerate
    always_ff @(posedge clk) begin
        address <= in_address;
        valid <= in_valid && !reset;
        out_valid <= valid && !reset;
        out_found <= hits != '0;
        out_destination <= hits[0] ? destinations[DESTINATION-1:0] : destinations[2*DESTINATION-1:DESTINATION];
    end
endmodule
