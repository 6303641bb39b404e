// The rate unit as the tests drive it, with all of a flow's state beside the result. Fields are from the lowest bit up, as
// `crates/cosim/tests/circuits/rate.rs` has them.
module laps_rate_bench #(
    parameter int unsigned FLOW = 3
) (
    input  logic         clk,
    input  logic [255:0] stimulus,
    output logic [255:0] response
);
    logic            out_valid;
    logic [FLOW-1:0] out_flow;
    logic [39:0]     out_current;
    laps_rate #(.FLOW(FLOW)) dut (
        .clk,
        .reset(stimulus[0]),
        .in_valid(stimulus[1]),
        .in_open(stimulus[2]),
        .to_share(stimulus[3]),
        .in_flow(stimulus[4+:FLOW]),
        .in_now(stimulus[20+:48]),
        .in_fastest(stimulus[68+:24]),
        .in_slowest(stimulus[92+:24]),
        .in_threshold(stimulus[116+:24]),
        .line(stimulus[140+:40]),
        .floor(stimulus[180+:40]),
        .out_valid,
        .out_flow,
        .out_current
    );
    logic [178:0] entry;
    always_ff @(posedge clk) entry <= dut.last_entry;
    assign response = {20'b0, entry, out_current, 16'(out_flow), out_valid};
endmodule
