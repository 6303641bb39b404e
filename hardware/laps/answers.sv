// What arrives is answered here: a probe by a reply, a data packet of an open flow by an acknowledgement, or, beyond the window of
// 64 packets, by a refusal. `Answers` of the crate `hardware` says what they tell. Each packet has an acknowledgement of its own, which
// looks back from the packet itself: `back` is 0. No credit is granted here: a PullRequest goes to the host, a pull target with its packet.
//
// Each frame that the parser decides about leaves, in order, as a verdict: whether the host gets it, and whether it has been
// answered. An answer goes to whom the question came from, on its path and UDP source port, in its traffic class.
//
// Latency: 4 clocks from `in_valid` to `out_valid`. Initiation interval: 1 frame, but 2 clocks after an accepted one, which no
// frame can undercut (an accepted one has two beats).
// Hazards: a flow is read in the clock in which the one before may write it, which is forwarded. A flow may be opened or closed
// while no packet of it is within 4 clocks. The loop of two clocks (set a bit, count ones, shift) is the longest of all paths
// here, about eight levels of LUT. After `reset` all flows are closed, in 2^FLOW clocks with `ready` low.
module laps_answers #(
    parameter int unsigned FLOW = 10
) (
    input  logic            clk,
    input  logic            reset,
    output logic            ready,
    input  logic            answer_probes,
    input  logic            answer_data,

    // By the host; taken when `open_ready` is high.
    input  logic            open_valid,
    output logic            open_ready,
    input  logic            open_up,
    input  logic [FLOW-1:0] open_flow,
    input  logic [23:0]     open_psn,

    // As `laps_parser` tells it.
    input  logic            in_valid,
    input  logic            in_accepted,
    input  logic [95:0]     in_ethernet,
    input  logic [7:0]      in_tos,
    input  logic [63:0]     in_addresses,
    input  logic [15:0]     in_source_port,
    input  logic [7:0]      in_opcode,
    input  logic [23:0]     in_destination_qp,
    input  logic [23:0]     in_psn,
    input  logic [15:0]     in_path,
    input  logic [23:0]     in_source_qp,
    input  logic [255:0]    in_extension,
    // Picoseconds, of the frame's first beat.
    input  logic [63:0]     in_arrived_at,

    output logic            out_valid,
    output logic            out_to_host,
    output logic            out_accepted,
    output logic            out_answered,
    // To `laps_builder`; with `out_valid` or not at all.
    output logic            answer_valid,
    output logic [488:0]    answer
);
    localparam logic [1:0] ACK = 0, NACK = 1, REPLY = 2;

    logic            clearing;
    logic [FLOW-1:0] clear_flow;
    assign ready = !clearing;
    always_ff @(posedge clk) begin
        if (reset) begin
            clearing <= 1'b1;
            clear_flow <= '0;
        end else if (clearing) begin
            clear_flow <= clear_flow + 1'b1;
            clearing <= clear_flow != '1;
        end
    end

    logic known, send, write, response, request, ack, nack, cnp, missing, rd;
    logic notice, notice_reply, probe, probe_reply, echo, pull, is_first, is_last, has_immediate, trimmed, bad_syndrome;
    logic [4:0] standard_len;
    logic [6:0] headers_len;
    logic [5:0] stamp_at;
    laps_layout layout (
        .opcode(in_opcode),
        .syndrome(8'h1f),
        .known,
        .bad_syndrome,
        .standard_len,
        .headers_len,
        .stamp_at,
        .is_send(send),
        .is_write(write),
        .is_read_response(response),
        .is_read_request(request),
        .is_ack(ack),
        .is_nack(nack),
        .is_cnp(cnp),
        .is_missing(missing),
        .is_rd(rd),
        .is_notice(notice),
        .is_notice_reply(notice_reply),
        .is_probe(probe),
        .is_probe_reply(probe_reply),
        .is_edge_echo(echo),
        .is_pull(pull),
        .is_first,
        .is_last,
        .has_immediate,
        .is_trimmed(trimmed)
    );
    logic is_data;
    assign is_data = in_accepted && answer_data && (send || write || response || request)
        && in_destination_qp[23:FLOW] == '0;

    // Clock 1: the flow is there, and the packet's bit is set.
    logic            valid1, accepted1, data1, probe1, reply1;
    logic [FLOW-1:0] flow1;
    logic [23:0]     psn1, ahead, expected;
    logic [63:0]     arrived;
    logic            open, inside_window, behind;
    logic [88:0]     stored, entry, changed, last_entry;
    logic            last;
    logic [FLOW-1:0] last_flow;
    assign entry = last && last_flow == flow1 ? last_entry : stored;
    assign {open, expected, arrived} = entry;
    assign ahead = psn1 - expected;
    assign behind = ahead[23];
    assign inside_window = ahead[23:6] == '0;

    // Clock 2: the window moves over what has arrived.
    logic            valid2, accepted2, data2, probe2, reply2, behind2, within2, writes;
    logic [FLOW-1:0] flow2;
    logic [23:0]     expected2, next_expected;
    logic [63:0]     set2;
    logic [7:0]      shift2;
    logic [6:0]      ones;
    always_comb begin
        ones = '0;
        for (int i = 63; i >= 0; i--) if (!set2[i]) ones = 7'(i);
        if (set2 == '1) ones = 7'd64;
    end
    assign next_expected = expected2 + {17'b0, ones};
    assign changed = {1'b1, next_expected, ones[6] ? '0 : set2 >> ones[5:0]};
    assign writes = valid2 && data2 && within2;
    assign open_ready = !clearing && !writes;
    laps_ram #(.WIDTH(89), .ADDRESS(FLOW)) flows (
        .clk,
        .write(clearing || writes || open_valid),
        .write_address(clearing ? clear_flow : writes ? flow2 : open_flow),
        .write_data(clearing ? '0 : writes ? changed : {open_up, open_psn, 64'b0}),
        .read_address(in_destination_qp[FLOW-1:0]),
        .read_data(stored)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );

    // Clocks 3 and 4: bit i of what is told is the packet i before. In front of the window all has arrived.
    logic         valid3, accepted3, data3, probe3, reply3, behind3, within3;
    logic [23:0]  expected3;
    logic [127:0] moved3;
    logic [4:0]   shift3;
    logic [63:0]  sack;
    logic [127:0] seen, row;
    assign seen = {set2, {64{1'b1}}};
    assign row = moved3 >> shift3;
    always_comb begin
        for (int i = 0; i < 64; i++) sack[i] = row[63-i];
        if (behind3) sack = '1;
    end

    logic [95:0]  ethernet4;
    logic [7:0]   tos4;
    logic [63:0]  addresses4, arrived_at4;
    logic [15:0]  source_port4, path4;
    logic [23:0]  destination_qp4, source_qp4, psn4;
    logic [63:0]  stamp, stamp4;
    assign stamp = probe ? in_extension[255-:64] : in_extension[255-8*12-:64];
    laps_delay #(.WIDTH(96 + 8 + 64 + 16 + 24 + 24 + 16 + 24 + 64 + 64), .CLOCKS(4)) beside (
        .clk,
        .d({in_ethernet, in_tos, in_addresses, in_source_port, in_destination_qp, in_psn, in_path, in_source_qp, stamp, in_arrived_at}),
        .q({ethernet4, tos4, addresses4, source_port4, destination_qp4, psn4, path4, source_qp4, stamp4, arrived_at4})
    );
    logic [1:0]  kind4;
    logic [23:0] expected4;
    logic [63:0] sack4;

    always_ff @(posedge clk) begin
        valid1 <= in_valid && !reset;
        accepted1 <= in_accepted;
        data1 <= is_data;
        probe1 <= in_accepted && answer_probes && probe;
        reply1 <= in_accepted && probe_reply;
        flow1 <= in_destination_qp[FLOW-1:0];
        psn1 <= in_psn;

        valid2 <= valid1 && !reset;
        accepted2 <= accepted1;
        data2 <= data1 && open;
        probe2 <= probe1;
        reply2 <= reply1;
        behind2 <= behind;
        within2 <= inside_window;
        flow2 <= flow1;
        expected2 <= expected;
        set2 <= arrived | (inside_window ? 64'b1 << ahead[5:0] : '0);
        // More than 127 leaves nothing of the window.
        shift2 <= ahead[23:7] != '0 ? 8'd128 : {1'b0, ahead[6:0]} + 8'd1;
        last <= writes;
        last_flow <= flow2;
        last_entry <= changed;

        valid3 <= valid2 && !reset;
        accepted3 <= accepted2;
        data3 <= data2;
        probe3 <= probe2;
        reply3 <= reply2;
        behind3 <= behind2;
        within3 <= within2;
        expected3 <= within2 ? next_expected : expected2;
        moved3 <= shift2[7] ? '0 : seen >> {shift2[6:5], 5'b0};
        shift3 <= shift2[4:0];

        out_valid <= valid3 && !reset;
        out_accepted <= accepted3;
        out_to_host <= !probe3 && !reply3 && !(data3 && !behind3 && !within3);
        out_answered <= data3 || probe3;
        answer_valid <= valid3 && !reset && (data3 || probe3);
        kind4 <= probe3 ? REPLY : !behind3 && !within3 ? NACK : ACK;
        expected4 <= expected3;
        sack4 <= sack;
    end
    // The ends change places.
    assign answer = {kind4, ethernet4[47:0], ethernet4[95:48], tos4[7:2], tos4[1:0] == 2'b11, addresses4[31:0], addresses4[63:32],
                     source_port4, source_qp4, destination_qp4, path4, psn4, expected4, sack4, stamp4, arrived_at4};
endmodule
