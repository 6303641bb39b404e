// The whole of it as the tests drive it, with the order in which operations enter. Fields are from the lowest bit up, as
// `crates/cosim/tests/circuits/top.rs` has them.
module laps_top_bench #(
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 4,
    parameter int unsigned FLOW = 3,
    parameter int unsigned POOL = 7,
    parameter int unsigned SEARCH = 4,
    parameter TABLE = "exp2.hex"
) (
    input  logic          clk,
    input  logic [1311:0] stimulus,
    output logic [1823:0] response
);
    logic reset;
    assign reset = stimulus[0];
    // Frames and writes wait here until they are taken, so that a test need not.
    logic         line_ready, queue_ready, write_ready, write_valid, awready, wready;
    logic         mac_in_valid, mac_in_ready, mac_in_last, host_in_valid, host_in_ready, host_in_last;
    logic [511:0] mac_in_data, host_in_data;
    logic [63:0]  mac_in_keep, host_in_keep;
    logic [33:0]  host_in_user;
    logic [12:0]  line_free, queue_free;
    logic [8:0]   writes_free;
    logic [11:0]  awaddr;
    logic [31:0]  wdata;
    laps_fifo #(.WIDTH(577), .DEPTH(12)) line (
        .clk,
        .reset,
        .in_valid(stimulus[1]),
        .in_ready(line_ready),
        .in_data({stimulus[96+:576], stimulus[2]}),
        .out_valid(mac_in_valid),
        .out_ready(mac_in_ready),
        .out_data({mac_in_data, mac_in_keep, mac_in_last}),
        .free_count(line_free)
    );
    laps_fifo #(.WIDTH(611), .DEPTH(12)) queue (
        .clk,
        .reset,
        .in_valid(stimulus[3]),
        .in_ready(queue_ready),
        .in_data({stimulus[672+:610], stimulus[4]}),
        .out_valid(host_in_valid),
        .out_ready(host_in_ready),
        .out_data({host_in_user, host_in_data, host_in_keep, host_in_last}),
        .free_count(queue_free)
    );
    laps_fifo #(.WIDTH(44), .DEPTH(8)) writes (
        .clk,
        .reset,
        .in_valid(stimulus[5]),
        .in_ready(write_ready),
        .in_data({stimulus[64+:32], stimulus[32+:12]}),
        .out_valid(write_valid),
        .out_ready(awready),
        .out_data({wdata, awaddr}),
        .free_count(writes_free)
    );

    logic         mac_out_valid, mac_out_last, host_out_valid, host_out_last, event_valid, bvalid, arready, rvalid;
    logic [511:0] mac_out_data, host_out_data;
    logic [63:0]  mac_out_keep, host_out_keep;
    logic [1:0]   host_out_user, bresp, rresp;
    logic [127:0] event_data;
    logic [31:0]  rdata;
    laps_top #(
        .PATH(PATH), .DESTINATION(DESTINATION), .FLOW(FLOW), .POOL(POOL), .SEARCH(SEARCH), .RECEIVE_BUFFER(7),
        .TRANSMIT_BUFFER(7), .EVENT(8), .TABLE(TABLE)
    ) dut (
        .awvalid(write_valid),
        .wvalid(write_valid),
        .wstrb('1),
        .bready(1'b1),
        .arvalid(stimulus[9]),
        .araddr(stimulus[48+:12]),
        .rready(1'b1),
        .mac_out_ready(stimulus[6]),
        .host_out_ready(stimulus[7]),
        .event_ready(stimulus[8]),
        .*
    );

    logic [31:0] flags;
    assign flags = {
        host_in_valid && host_in_ready, dut.rate_open, rresp, rvalid, dut.transmit.is_probe, dut.transmit.picks_built, dut.transmit.sent_valid,
        line_ready && queue_ready && write_ready, dut.rate_valid, dut.transmit.sends_first, dut.rate_ack, dut.ring_op,
        dut.ring_valid && dut.ring_ready, dut.sweeps, dut.chooses && dut.chooses_again,
        dut.chooses && !dut.chooses_again, dut.looks, dut.measures, dut.tells,
        bvalid && bresp != '0, mac_in_last, mac_in_valid && mac_in_ready, event_valid && stimulus[8], mac_out_last,
        mac_out_valid && stimulus[6], host_out_user, host_out_last, host_out_valid && stimulus[7]
    };
    assign response = {
        event_data, mac_out_data, mac_out_keep, host_out_data, host_out_keep,
        rdata,
        16'(dut.rate_ack ? dut.acked_flow : dut.argument0[FLOW-1:0]), 16'(dut.rate_flow), 24'b0, dut.rate_current,
        16'b0, dut.slowest, dut.fastest,
        24'b0, dut.ring_stamp, 8'b0, dut.out_psn, 16'b0, dut.out_flow, 32'(dut.ring_path),
        16'(dut.choosing_destination), 16'b0,
        dut.now,
        7'b0, dut.argument1[0], dut.tells ? dut.argument2[23:0] : dut.measured_delay,
        16'(dut.op_path), 16'(dut.op_destination),
        flags
    };
endmodule
