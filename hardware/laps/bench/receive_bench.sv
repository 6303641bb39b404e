// The receiving side as the tests drive it, its answers made into frames. Fields are from the lowest bit up, as
// `crates/cosim/tests/circuits/receive.rs` has them.
module laps_receive_bench #(
    parameter int unsigned FLOW = 3,
    parameter int unsigned BUFFER = 7
) (
    input  logic          clk,
    input  logic [703:0]  stimulus,
    output logic [1343:0] response
);
    // Frames wait here until they are taken, so that a test need not.
    logic         line_ready, mac_valid, mac_last, mac_ready;
    logic [511:0] mac_data;
    logic [63:0]  mac_keep;
    logic [12:0]  line_free;
    laps_fifo #(.WIDTH(577), .DEPTH(12)) line (
        .clk,
        .reset(stimulus[0]),
        .in_valid(stimulus[1]),
        .in_ready(line_ready),
        .in_data({stimulus[703-:576], stimulus[2]}),
        .out_valid(mac_valid),
        .out_ready(mac_ready),
        .out_data({mac_data, mac_keep, mac_last}),
        .free_count(line_free)
    );
    logic          host_valid, host_last, open_ready, answer_valid, answer_ready;
    logic         heard_valid, heard_ack, decided, decided_accepted, decided_answered;
    logic [511:0] host_data;
    logic [63:0]  host_keep;
    logic [1:0]   host_user;
    logic [488:0] answer;
    logic [23:0]  heard_qp, heard_delay;
    logic [31:0]  heard_address;
    logic [15:0]  heard_path;
    logic [39:0]  heard_stamp;
    laps_receive #(.FLOW(FLOW), .BUFFER(BUFFER)) dut (
        .clk,
        .reset(stimulus[0]),
        .now(stimulus[64+:64]),
        .answer_probes(1'b1),
        .answer_data(1'b1),
        .open_valid(stimulus[3]),
        .open_up(stimulus[4]),
        .open_flow(stimulus[8+:FLOW]),
        .open_psn(stimulus[32+:24]),
        .host_ready(stimulus[5]),
        .heard_ready(stimulus[7]),
        .*
    );
    logic         built_valid, built_last, frame_valid, frame_last;
    logic [511:0] built_data, frame_data;
    logic [63:0]  built_keep, frame_keep;
    laps_builder builder (
        .clk,
        .reset(stimulus[0]),
        .in_valid(answer_valid),
        .in_ready(answer_ready),
        .in_data(answer),
        .out_valid(built_valid),
        .out_ready(stimulus[6]),
        .out_last(built_last),
        .out_data(built_data),
        .out_keep(built_keep)
    );
    laps_deparser deparser (
        .clk,
        .reset(stimulus[0]),
        .in_valid(built_valid && stimulus[6]),
        .in_last(built_last),
        .in_data(built_data),
        .in_keep(built_keep),
        .in_ours(1'b1),
        .in_stamp(1'b0),
        .in_path('0),
        .in_port('0),
        .in_now('0),
        .out_valid(frame_valid),
        .out_last(frame_last),
        .out_data(frame_data),
        .out_keep(frame_keep)
    );
    assign response = {
        23'b0, heard_stamp, heard_delay, heard_path, heard_address, heard_qp, heard_ack,
        frame_data, frame_keep, host_data, host_keep,
        18'b0, line_ready, mac_valid && mac_last, open_ready, decided_answered, decided_accepted, decided, heard_valid, frame_last, frame_valid, host_user, host_last, host_valid, mac_valid && mac_ready
    };
endmodule
