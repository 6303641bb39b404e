// From the host to the line: a path is chosen for each data packet, frames get path, port, time stamp and checksums, and answers
// and probes go between them.
//
// `host_user` counts in a frame's first beat: bit 0, choose a path (a data packet of the flow in bits 31-16 to the destination in
// bits 15-0 above bits 1-0); bit 1, it is a packet of ours and gets its checksums. Of a packet that is to be probed beside, the probe
// has addresses, class and queue pairs. Its own queue pair is the number of its flow.
//
// Latency: 38 + 2 PATH clocks from a frame's first beat to its first at the line, if nothing is before it.
// Initiation interval: 1 beat. Choices are asked for while frames before are under way, so that none waits for another.
// Hazards: a frame waits while every path to its destination is down (the choice is asked for again and again), while the loss rings
// are full, and while `line_ready` is low. Frames behind it wait, too.
module laps_transmit #(
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 10,
    // Beats of the buffer are 2^BUFFER.
    parameter int unsigned BUFFER = 9
) (
    input  logic                        clk,
    input  logic                        reset,
    // Picoseconds.
    input  logic [63:0]                 now,
    input  logic                        choose,

    input  logic                        host_valid,
    output logic                        host_ready,
    input  logic                        host_last,
    input  logic [511:0]                host_data,
    input  logic [63:0]                 host_keep,
    input  logic [33:0]                 host_user,

    // As `laps_receive` tells it.
    input  logic                        answer_valid,
    output logic                        answer_ready,
    input  logic [488:0]                answer,

    // A choice is wanted; a second one for the same frame if the first has found nothing.
    output logic                        ask_valid,
    input  logic                        ask_ready,
    output logic                        ask_again,
    output logic [DESTINATION-1:0]      ask_destination,
    // In the order asked: a path to be probed, if any; the choice.
    input  logic                        look_valid,
    input  logic                        look_probe,
    input  logic [DESTINATION-1:0]      look_destination,
    input  logic [PATH-1:0]             look_path,
    input  logic                        choice_valid,
    input  logic                        choice_again,
    input  logic                        choice_none,
    input  logic [DESTINATION-1:0]      choice_destination,
    input  logic [PATH-1:0]             choice_path,

    input  logic                        port_write,
    input  logic [DESTINATION+PATH-1:0] port_address,
    input  logic [15:0]                 port,

    // A data packet leaves; there is room for it if there is for 20, with all that wait for the rings.
    input  logic                        rings_room,
    output logic                        sent_valid,
    input  logic                        sent_ready,
    output logic [DESTINATION+PATH-1:0] sent_path,
    output logic [15:0]                 sent_flow,
    output logic [23:0]                 sent_psn,
    output logic [39:0]                 sent_stamp,

    output logic                        line_valid,
    input  logic                        line_ready,
    output logic                        line_last,
    output logic [511:0]                line_data,
    output logic [63:0]                 line_keep,

    // For counters.
    output logic                        counts_probe,
    output logic                        counts_none
);
    localparam int unsigned LEAF = DESTINATION + PATH;
    // In the deparser.
    localparam logic [5:0] UNDER_WAY = 16;

    // In: beats and, of each frame, what its first beat says. A choice is asked for at once.
    logic         starts, takes, ask_room, buffer_ready, info_ready, chooses;
    logic [15:0]  in_destination, in_flow;
    assign {in_flow, in_destination} = host_user[33:2];
    assign chooses = host_user[0] && choose;
    assign host_ready = buffer_ready && (!starts || (info_ready && ask_room));
    assign takes = host_valid && host_ready;
    logic         beat_valid, beat_ready, beat_last;
    logic [511:0] beat_data;
    logic [63:0]  beat_keep;
    logic [BUFFER:0] buffer_free;
    laps_fifo #(.WIDTH(577), .DEPTH(BUFFER)) buffer (
        .clk,
        .reset,
        .in_valid(takes),
        .in_ready(buffer_ready),
        .in_data({host_last, host_keep, host_data}),
        .out_valid(beat_valid),
        .out_ready(beat_ready),
        .out_data({beat_last, beat_keep, beat_data}),
        .free_count(buffer_free)
    );
    // Of each frame: whether it is ours, whether a path is chosen, destination, flow.
    logic        info_valid, info_done, ours, chosen;
    logic [15:0] destination, flow;
    logic [5:0]  info_free, ask_free, look_free, choice_free;
    laps_fifo #(.WIDTH(34), .DEPTH(5)) infos (
        .clk,
        .reset,
        .in_valid(takes && starts),
        .in_ready(info_ready),
        .in_data({host_user[1], chooses, in_destination, in_flow}),
        .out_valid(info_valid),
        .out_ready(info_done),
        .out_data({ours, chosen, destination, flow}),
        .free_count(info_free)
    );
    logic                   first_ask_valid, first_ask_ready;
    logic [DESTINATION-1:0] first_ask;
    laps_fifo #(.WIDTH(DESTINATION), .DEPTH(5)) asks (
        .clk,
        .reset,
        .in_valid(takes && starts && chooses),
        .in_ready(ask_room),
        .in_data(in_destination[DESTINATION-1:0]),
        .out_valid(first_ask_valid),
        .out_ready(first_ask_ready),
        .out_data(first_ask),
        .free_count(ask_free)
    );
    always_ff @(posedge clk) begin
        if (takes) starts <= host_last;
        if (reset) starts <= 1'b1;
    end

    // What has been found, with its port a clock later. Both hold as much as there are frames.
    logic                   look1, probe1, choice1, again1, none1;
    logic [PATH-1:0]        look_path1, choice_path1;
    logic [DESTINATION-1:0] choice_destination1;
    logic [15:0]            look_port1, choice_port1;
    laps_ram #(.WIDTH(16), .ADDRESS(LEAF)) look_ports (
        .clk,
        .write(port_write),
        .write_address(port_address),
        .write_data(port),
        .read_address({look_destination, look_path}),
        .read_data(look_port1)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    laps_ram #(.WIDTH(16), .ADDRESS(LEAF)) choice_ports (
        .clk,
        .write(port_write),
        .write_address(port_address),
        .write_data(port),
        .read_address({choice_destination, choice_path}),
        .read_data(choice_port1)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    always_ff @(posedge clk) begin
        look1 <= look_valid && !reset;
        probe1 <= look_probe;
        look_path1 <= look_path;
        choice1 <= choice_valid && !reset;
        again1 <= choice_again;
        none1 <= choice_none;
        choice_path1 <= choice_path;
    end
    logic            found_valid, found_none, looked_valid, looked_probe, looks_ready, choices_ready;
    logic [PATH-1:0] found_path, looked_path, path;
    logic [15:0]     found_port, looked_port, path_port;
    logic            choice_done;
    laps_fifo #(.WIDTH(1 + PATH + 16), .DEPTH(5)) looks (
        .clk,
        .reset,
        .in_valid(look1),
        .in_ready(looks_ready),
        .in_data({probe1, look_path1, look_port1}),
        .out_valid(looked_valid),
        .out_ready(choice_done),
        .out_data({looked_probe, looked_path, looked_port}),
        .free_count(look_free)
    );
    laps_fifo #(.WIDTH(1 + PATH + 16), .DEPTH(5)) choices (
        .clk,
        .reset,
        .in_valid(choice1 && !again1),
        .in_ready(choices_ready),
        .in_data({none1, choice_path1, choice_port1}),
        .out_valid(found_valid),
        .out_ready(choice_done),
        .out_data({found_none, found_path, found_port}),
        .free_count(choice_free)
    );

    // The frame in front found nothing: asked again until it finds something.
    logic            asks_again, waits_again, again_found;
    logic [PATH-1:0] again_path;
    logic [15:0]     again_port;
    assign asks_again = info_valid && chosen && found_valid && found_none && !waits_again && !again_found;
    assign ask_valid = asks_again || first_ask_valid;
    assign ask_again = asks_again;
    assign ask_destination = asks_again ? destination[DESTINATION-1:0] : first_ask;
    assign first_ask_ready = ask_ready && !asks_again;
    assign path = found_none ? again_path : found_path;
    assign path_port = found_none ? again_port : found_port;
    always_ff @(posedge clk) begin
        if (asks_again && ask_ready) waits_again <= 1'b1;
        if (choice1 && again1) begin
            waits_again <= 1'b0;
            again_found <= !none1;
            again_path <= choice_path1;
            again_port <= choice_port1;
        end
        if (choice_done) again_found <= 1'b0;
        if (reset) {waits_again, again_found} <= '0;
    end
    assign counts_none = choice1 && none1;

    // Out: answers and probes, or a frame of the host, in turn.
    logic         probe_valid, probe_ready, probes_ready, record_valid, record_ready, built_valid, built_ready, built_last;
    logic [488:0] probe, record;
    logic [511:0] built_data;
    logic [63:0]  built_keep;
    logic [4:0]   probes_free;
    logic         makes_probe, builds_probe, probes_turn, built_second;
    // Answers go first; whichever has sent its first beat sends its second.
    assign builds_probe = built_second ? probes_turn : !answer_valid;
    assign record_valid = answer_valid || probe_valid;
    assign record = builds_probe ? probe : answer;
    assign answer_ready = record_ready && !builds_probe;
    assign probe_ready = record_ready && builds_probe;
    always_ff @(posedge clk) begin
        if (built_valid && built_ready) begin
            built_second <= !built_last;
            probes_turn <= builds_probe;
        end
        if (reset) built_second <= 1'b0;
    end
    laps_builder builder (
        .clk,
        .reset,
        .in_valid(record_valid),
        .in_ready(record_ready),
        .in_data(record),
        .out_valid(built_valid),
        .out_ready(built_ready),
        .out_last(built_last),
        .out_data(built_data),
        .out_keep(built_keep)
    );

    logic       locked, built_turn, picks_built, goes, room, sends, sends_first, host_goes;
    logic [5:0] line_free;
    assign room = line_free > UNDER_WAY;
    assign host_goes = info_valid && beat_valid && (!chosen || (looked_valid && found_valid && (!found_none || again_found)
        && rings_room && sent_ready && probes_ready));
    assign picks_built = locked ? built_turn : built_valid && (built_turn || !host_goes);
    assign goes = locked ? (built_turn ? built_valid : beat_valid) : built_valid || host_goes;
    assign sends = goes && room;
    assign sends_first = sends && !locked;
    assign built_ready = room && picks_built && goes;
    assign beat_ready = room && !picks_built && goes;
    assign info_done = beat_ready && beat_last;
    assign choice_done = info_done && chosen;
    logic last;
    assign last = picks_built ? built_last : beat_last;
    always_ff @(posedge clk) begin
        if (sends) begin
            locked <= !last;
            // Whoever has just sent is second next time.
            built_turn <= last ? !picks_built : picks_built;
        end
        if (reset) {locked, built_turn} <= '0;
    end

    assign sent_valid = sends_first && !picks_built && chosen;
    assign sent_path = {destination[DESTINATION-1:0], path};
    assign sent_flow = flow;
    assign sent_psn = {beat_data[8*51+:8], beat_data[8*52+:8], beat_data[8*53+:8]};
    assign sent_stamp = now[49:10];
    assign makes_probe = sent_valid && looked_probe;
    assign counts_probe = makes_probe;
    logic [95:0] ethernet;
    logic [63:0] addresses;
    always_comb begin
        for (int i = 0; i < 12; i++) ethernet[95-8*i-:8] = beat_data[8*i+:8];
        for (int i = 0; i < 8; i++) addresses[63-8*i-:8] = beat_data[8*(26+i)+:8];
    end
    laps_fifo #(.WIDTH(489), .DEPTH(4)) probes (
        .clk,
        .reset,
        .in_valid(makes_probe),
        .in_ready(probes_ready),
        .in_data({2'd3, ethernet, beat_data[8*15+2+:6], 1'b0, addresses, looked_port, beat_data[8*47+:8], beat_data[8*48+:8],
                  beat_data[8*49+:8], 8'b0, flow, 16'(looked_path), 240'b0}),
        .out_valid(probe_valid),
        .out_ready(probe_ready),
        .out_data(probe),
        .free_count(probes_free)
    );

    // A probe says when it leaves, too.
    logic         is_probe;
    assign is_probe = record[488:487] == 2'd3;
    logic         made_valid, made_last;
    logic [511:0] made_data;
    logic [63:0]  made_keep;
    laps_deparser deparser (
        .clk,
        .reset,
        .in_valid(sends),
        .in_last(last),
        .in_data(picks_built ? built_data : beat_data),
        .in_keep(picks_built ? built_keep : beat_keep),
        .in_ours(picks_built || ours),
        .in_stamp(picks_built ? is_probe : chosen),
        .in_path(picks_built ? record[255-:16] : 16'(path)),
        .in_port(picks_built ? record[319-:16] : path_port),
        .in_now(now),
        .out_valid(made_valid),
        .out_last(made_last),
        .out_data(made_data),
        .out_keep(made_keep)
    );
    logic line_has_room;
    laps_fifo #(.WIDTH(577), .DEPTH(5)) line (
        .clk,
        .reset,
        .in_valid(made_valid),
        .in_ready(line_has_room),
        .in_data({made_last, made_keep, made_data}),
        .out_valid(line_valid),
        .out_ready(line_ready),
        .out_data({line_last, line_keep, line_data}),
        .free_count(line_free)
    );
endmodule
