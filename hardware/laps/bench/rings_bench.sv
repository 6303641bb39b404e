// The rings as the tests drive them, with a queue before them, so that operations follow as closely as they can. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/rings.rs` has them.
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
    logic             in_valid, queue_ready;
    logic [97:0]      in_data;
    logic [8:0]       queue_free;
    laps_fifo #(.WIDTH(98), .DEPTH(8)) queue (
        .clk,
        .reset(stimulus[0]),
        .in_valid(stimulus[1]),
        .in_ready(queue_ready),
        .in_data(stimulus[99:2]),
        .out_valid(in_valid),
        .out_ready(in_ready),
        .out_data(in_data),
        .free_count(queue_free)
    );
    laps_rings #(.POOL(POOL), .PATHS(PATHS)) dut (
        .clk,
        .reset(stimulus[0]),
        .in_ready,
        .full,
        .in_valid,
        .in_operation(in_data[1:0]),
        .in_path(in_data[2+:PATHS]),
        .in_queue_pair(in_data[18+:16]),
        .in_psn(in_data[34+:24]),
        .in_stamp(in_data[58+:40]),
        .out_lost,
        .out_path,
        .out_queue_pair,
        .out_psn,
        .out_stamp,
        .free_count
    );
    assign response = {12'b0, 16'(free_count), out_stamp, out_psn, out_queue_pair, 16'(out_path), out_lost, full, queue_ready, in_valid && in_ready};
endmodule
