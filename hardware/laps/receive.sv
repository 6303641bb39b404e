// From the line to the host: frames are kept until the parser has decided about them, answered here or handed on, and what
// acknowledgements and replies to probes measure is told.
//
// A frame goes to the host as it came, unless it is a probe that is answered here, a reply to one, or a data packet that is
// refused. `host_user` says what was decided: bit 0, it is a packet of ours; bit 1, it has been answered.
//
// Latency: 16 clocks from a frame's last beat to its first at the host, if nothing is before it. Initiation interval: 1 beat.
// Hazards: none. Parser and answers never stall: `mac_ready` falls while there is still room for all that is on its way. A frame of
// more than half of the buffer is cut there, and what follows is dropped. As `laps_answers`, it is not ready right after `reset`.
module laps_receive #(
    parameter int unsigned FLOW = 10,
    // Beats of the buffer are 2^BUFFER.
    parameter int unsigned BUFFER = 10
) (
    input  logic            clk,
    input  logic            reset,
    // Picoseconds.
    input  logic [63:0]     now,
    input  logic            answer_probes,
    input  logic            answer_data,

    input  logic            open_valid,
    output logic            open_ready,
    input  logic            open_up,
    input  logic [FLOW-1:0] open_flow,
    input  logic [23:0]     open_psn,

    input  logic            mac_valid,
    output logic            mac_ready,
    input  logic            mac_last,
    input  logic [511:0]    mac_data,
    input  logic [63:0]     mac_keep,

    output logic            host_valid,
    input  logic            host_ready,
    output logic            host_last,
    output logic [511:0]    host_data,
    output logic [63:0]     host_keep,
    output logic [1:0]      host_user,

    // To `laps_builder`.
    output logic            answer_valid,
    input  logic            answer_ready,
    output logic [488:0]    answer,

    // An acknowledgement, or a reply to a probe.
    output logic            heard_valid,
    input  logic            heard_ready,
    output logic            heard_ack,
    output logic [23:0]     heard_qp,
    output logic [31:0]     heard_address,
    output logic [15:0]     heard_path,
    // Ticks.
    output logic [23:0]     heard_delay,
    output logic [39:0]     heard_stamp,

    // For counters: a frame was decided about.
    output logic            decided,
    output logic            decided_accepted,
    output logic            decided_answered
);
    // More than the results on their way: 15 clocks of one-beat frames.
    localparam logic [5:0] ON_THE_WAY = 20;
    logic [BUFFER:0] beats_free;
    logic [5:0]      verdicts_free, answers_free, heards_free;
    logic            answers_ready, ready, skips;
    logic [BUFFER-1:0] beats;
    logic            taken, last, cut, begins;
    assign mac_ready = ready || skips;
    assign taken = mac_valid && ready && !skips;
    assign cut = beats == BUFFER'((1 << (BUFFER - 1)) - 1);
    assign last = mac_last || cut;
    assign begins = beats == '0;
    always_ff @(posedge clk) begin
        ready <= answers_ready && beats_free > 2 && verdicts_free > ON_THE_WAY && answers_free > ON_THE_WAY && heards_free > ON_THE_WAY;
        if (taken) beats <= last ? '0 : beats + 1'b1;
        if (taken && cut && !mac_last) skips <= 1'b1;
        else if (mac_valid && mac_last) skips <= 1'b0;
        if (reset) begin
            ready <= 1'b0;
            beats <= '0;
            skips <= 1'b0;
        end
    end

    logic         beat_valid, beat_ready, beat_last;
    logic [511:0] beat_data;
    logic [63:0]  beat_keep;
    logic         beats_ready, stamps_ready, verdicts_ready, records_ready, heards_ready, stamp_valid;
    laps_fifo #(.WIDTH(577), .DEPTH(BUFFER)) buffer (
        .clk,
        .reset,
        .in_valid(taken),
        .in_ready(beats_ready),
        .in_data({last, mac_keep, mac_data}),
        .out_valid(beat_valid),
        .out_ready(beat_ready),
        .out_data({beat_last, beat_keep, beat_data}),
        .free_count(beats_free)
    );

    logic         parsed, accepted, ack_request;
    logic [95:0]  ethernet;
    logic [7:0]   tos, ttl, opcode, flags;
    logic [63:0]  addresses, arrived_at;
    logic [15:0]  source_port, path, payload_len;
    logic [23:0]  destination_qp, psn, source_qp;
    logic [127:0] standard;
    logic [31:0]  immediate;
    logic [255:0] extension;
    laps_parser parser (
        .clk,
        .reset,
        .in_valid(taken),
        .in_last(last),
        .in_data(mac_data),
        .in_keep(mac_keep),
        .out_valid(parsed),
        .out_accepted(accepted),
        .out_ethernet(ethernet),
        .out_tos(tos),
        .out_ttl(ttl),
        .out_addresses(addresses),
        .out_source_port(source_port),
        .out_opcode(opcode),
        .out_destination_qp(destination_qp),
        .out_ack_request(ack_request),
        .out_psn(psn),
        .out_standard(standard),
        .out_immediate(immediate),
        .out_path(path),
        .out_flags(flags),
        .out_source_qp(source_qp),
        .out_extension(extension),
        .out_payload_len(payload_len)
    );
    // When each frame began that is not decided about yet: 12 at most.
    logic [4:0] stamps_free;
    laps_fifo #(.WIDTH(64), .DEPTH(4)) stamps (
        .clk,
        .reset,
        .in_valid(taken && begins),
        .in_ready(stamps_ready),
        .in_data(now),
        .out_valid(stamp_valid),
        .out_ready(parsed),
        .out_data(arrived_at),
        .free_count(stamps_free)
    );

    logic         verdict, to_host, record_valid, verdict_valid, verdict_to_host;
    logic [488:0] record;
    laps_answers #(.FLOW(FLOW)) answers (
        .clk,
        .reset,
        .ready(answers_ready),
        .answer_probes,
        .answer_data,
        .open_valid,
        .open_ready,
        .open_up,
        .open_flow,
        .open_psn,
        .in_valid(parsed),
        .in_accepted(accepted),
        .in_ethernet(ethernet),
        .in_tos(tos),
        .in_addresses(addresses),
        .in_source_port(source_port),
        .in_opcode(opcode),
        .in_destination_qp(destination_qp),
        .in_psn(psn),
        .in_path(path),
        .in_source_qp(source_qp),
        .in_extension(extension),
        .in_arrived_at(arrived_at),
        .out_valid(verdict),
        .out_to_host(to_host),
        .out_accepted(decided_accepted),
        .out_answered(decided_answered),
        .answer_valid(record_valid),
        .answer(record)
    );
    assign decided = verdict;
    laps_fifo #(.WIDTH(489), .DEPTH(5)) records (
        .clk,
        .reset,
        .in_valid(record_valid),
        .in_ready(records_ready),
        .in_data(record),
        .out_valid(answer_valid),
        .out_ready(answer_ready),
        .out_data(answer),
        .free_count(answers_free)
    );
    laps_fifo #(.WIDTH(3), .DEPTH(5)) verdicts (
        .clk,
        .reset,
        .in_valid(verdict),
        .in_ready(verdicts_ready),
        .in_data({to_host, decided_answered, decided_accepted}),
        .out_valid(verdict_valid),
        .out_ready(beat_valid && beat_ready && beat_last),
        .out_data({verdict_to_host, host_user}),
        .free_count(verdicts_free)
    );
    assign host_valid = beat_valid && verdict_valid && verdict_to_host;
    assign host_last = beat_last;
    assign host_data = beat_data;
    assign host_keep = beat_keep;
    assign beat_ready = verdict_valid && (host_ready || !verdict_to_host);

    // What has been measured: received less echo, 0 if negative, cut to ticks.
    logic        hears, heard1, ack1;
    logic [63:0] echo, received;
    logic [64:0] took1;
    logic [23:0] qp1;
    logic [31:0] address1;
    logic [15:0] path1;
    logic [39:0] stamp1;
    logic        is_ack;
    assign is_ack = opcode == 8'hd1 && standard[127:120] == 8'h1f;
    assign hears = parsed && accepted && (is_ack || opcode == 8'hda);
    assign echo = is_ack ? extension[255-8*16-:64] : extension[255-:64];
    assign received = is_ack ? extension[255-8*24-:64] : extension[255-8*8-:64];
    always_ff @(posedge clk) begin
        heard1 <= hears && !reset;
        ack1 <= is_ack;
        took1 <= {1'b0, received} - {1'b0, echo};
        qp1 <= destination_qp;
        address1 <= addresses[63:32];
        path1 <= path;
        stamp1 <= echo[49:10];
    end
    laps_fifo #(.WIDTH(137), .DEPTH(5)) heards (
        .clk,
        .reset,
        .in_valid(heard1),
        .in_ready(heards_ready),
        .in_data({ack1, qp1, address1, path1, took1[64] ? 24'h0 : took1[63:34] != '0 ? 24'hffffff : took1[33:10], stamp1}),
        .out_valid(heard_valid),
        .out_ready(heard_ready),
        .out_data({heard_ack, heard_qp, heard_address, heard_path, heard_delay, heard_stamp}),
        .free_count(heards_free)
    );
endmodule
