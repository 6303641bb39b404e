// The rings as the tests drive them. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/rings.rs` has them.
module laps_rings_bench #(
    parameter int unsigned POOL = 4,
    parameter int unsigned PATHS = 3
) (
    input  logic         clk,
    input  logic [127:0] stimulus,
    output logic [127:0] response
);
    logic             in_ready, full, out_lost;
    logic [PATHS-1:0] out_path;
    logic [15:0]      out_queue_pair;
    logic [23:0]      out_psn;
    logic [39:0]      out_stamp;
    logic [POOL:0]    free_count;
    laps_rings #(.POOL(POOL), .PATHS(PATHS)) dut (
        .clk,
        .reset(stimulus[0]),
        .in_ready,
        .full,
        .in_valid(stimulus[1]),
        .in_operation(stimulus[3:2]),
        .in_path(stimulus[4+:PATHS]),
        .in_queue_pair(stimulus[20+:16]),
        .in_psn(stimulus[36+:24]),
        .in_stamp(stimulus[60+:40]),
        .out_lost,
        .out_path,
        .out_queue_pair,
        .out_psn,
        .out_stamp,
        .free_count
    );
    assign response = {13'b0, 16'(free_count), out_stamp, out_psn, out_queue_pair, 16'(out_path), out_lost, full, in_ready};
endmodule
