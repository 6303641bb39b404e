// Holds a value for CLOCKS clocks. Latency: CLOCKS. Initiation interval: 1. No reset: what is valid is told beside it.
module laps_delay #(
    parameter int unsigned WIDTH = 1,
    parameter int unsigned CLOCKS = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);
    logic [WIDTH*CLOCKS-1:0] line;

    generate
        if (CLOCKS == 1) begin : one
            always_ff @(posedge clk) line <= d;
        end else begin : more
            always_ff @(posedge clk) line <= {line[WIDTH*(CLOCKS-1)-1:0], d};
        end
    endgenerate
    assign q = line[WIDTH*CLOCKS-1-:WIDTH];
endmodule
