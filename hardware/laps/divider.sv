// Divides: `quotient` is `dividend` / `divisor`, rounded down, all ones where that does not fit or the divisor is 0.
//
// Latency: QUOTIENT + 1 clocks. Initiation interval: 1. Hazards: none.
module laps_divider #(
    parameter int unsigned DIVISOR = 24,
    parameter int unsigned QUOTIENT = 40
) (
    input  logic                        clk,
    input  logic [DIVISOR+QUOTIENT-1:0] dividend,
    input  logic [DIVISOR-1:0]          divisor,
    output logic [QUOTIENT-1:0]         quotient
);
    // After i steps: the remainder, the bits of the dividend that are left with those of the quotient behind them.
    logic [(QUOTIENT+1)*DIVISOR-1:0]  remainder, by;
    logic [(QUOTIENT+1)*QUOTIENT-1:0] rest;
    logic [QUOTIENT:0]                oversized;
    always_ff @(posedge clk) begin
        remainder[DIVISOR-1:0] <= dividend[DIVISOR+QUOTIENT-1:QUOTIENT];
        rest[QUOTIENT-1:0] <= dividend[QUOTIENT-1:0];
        by[DIVISOR-1:0] <= divisor;
        oversized[0] <= dividend[DIVISOR+QUOTIENT-1:QUOTIENT] >= divisor;
    end
    generate
        for (genvar i = 0; i < QUOTIENT; i++) begin : step
            logic [DIVISOR:0]   now;
            logic [DIVISOR+1:0] left;
            assign now = {remainder[i*DIVISOR+:DIVISOR], rest[i*QUOTIENT+QUOTIENT-1]};
            assign left = {1'b0, now} - {2'b0, by[i*DIVISOR+:DIVISOR]};
            always_ff @(posedge clk) begin
                remainder[(i+1)*DIVISOR+:DIVISOR] <= left[DIVISOR+1] ? now[DIVISOR-1:0] : left[DIVISOR-1:0];
                rest[(i+1)*QUOTIENT+:QUOTIENT] <= {rest[i*QUOTIENT+:QUOTIENT-1], !left[DIVISOR+1]};
                by[(i+1)*DIVISOR+:DIVISOR] <= by[i*DIVISOR+:DIVISOR];
                oversized[i+1] <= oversized[i];
            end
        end
    endgenerate
    assign quotient = oversized[QUOTIENT] ? '1 : rest[QUOTIENT*QUOTIENT+:QUOTIENT];
endmodule
