// LAPS in an adapter, between MAC and host: AXI-Stream of 512 bits in and out at either side, events to the host, and registers.
//
// From the line (`mac_`): probes and data are answered, what acknowledgements and replies to probes measure goes to the state of the
// paths, to the loss rings and to the rates; all but probes and replies goes on to the host. From the host: a path is drawn for each
// data packet, a silent one is probed beside it, and the frame gets path, port, time stamp and checksums.
//
// Operations on the state of the paths follow each other in one order, one a clock: commands first, then delays heard, then
// looks for a silent path before a choice, then the sweep. What they change goes to the chooser at once; a choice goes there after
// its look, in the first clock that no change needs. So a choice sees all that was heard before.
//
// Latency: see `laps_receive` and `laps_transmit`. Initiation interval: 1 beat either way, and 1 operation on the paths.
// Hazards: none but those of the modules. After `reset` it is not ready until all memories are clear: 2^(DESTINATION + PATH) clocks
// or 2^POOL, if that is more. `hardware/registers.csv` and `commands.csv` say how the host fills them.
module laps_top #(
    // Paths of a destination are 2^PATH; destinations, flows, packets in the loss rings, places of a way of the search table likewise.
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 10,
    parameter int unsigned FLOW = 10,
    parameter int unsigned POOL = 14,
    parameter int unsigned SEARCH = 10,
    // Beats of the buffers.
    parameter int unsigned RECEIVE_BUFFER = 10,
    parameter int unsigned TRANSMIT_BUFFER = 9,
    // Lost packets of which the host has yet to be told.
    parameter int unsigned EVENT = 10,
    parameter TABLE = "exp2.hex"
) (
    input  logic         clk,
    input  logic         reset,

    input  logic         mac_in_valid,
    output logic         mac_in_ready,
    input  logic         mac_in_last,
    input  logic [511:0] mac_in_data,
    input  logic [63:0]  mac_in_keep,
    output logic         mac_out_valid,
    input  logic         mac_out_ready,
    output logic         mac_out_last,
    output logic [511:0] mac_out_data,
    output logic [63:0]  mac_out_keep,

    input  logic         host_in_valid,
    output logic         host_in_ready,
    input  logic         host_in_last,
    input  logic [511:0] host_in_data,
    input  logic [63:0]  host_in_keep,
    // As `laps_transmit` has it.
    input  logic [33:0]  host_in_user,
    output logic         host_out_valid,
    input  logic         host_out_ready,
    output logic         host_out_last,
    output logic [511:0] host_out_data,
    output logic [63:0]  host_out_keep,
    // As `laps_receive` has it.
    output logic [1:0]   host_out_user,

    // Lost packets: path (destination above it), flow, PSN, stamp in ticks, from bit 0 up.
    output logic         event_valid,
    input  logic         event_ready,
    output logic [127:0] event_data,

    // AXI4-Lite.
    input  logic         awvalid,
    output logic         awready,
    input  logic [11:0]  awaddr,
    input  logic         wvalid,
    output logic         wready,
    input  logic [31:0]  wdata,
    input  logic [3:0]   wstrb,
    output logic         bvalid,
    input  logic         bready,
    output logic [1:0]   bresp,
    input  logic         arvalid,
    output logic         arready,
    input  logic [11:0]  araddr,
    output logic         rvalid,
    input  logic         rready,
    output logic [31:0]  rdata,
    output logic [1:0]   rresp
);
    localparam int unsigned LEAF = DESTINATION + PATH;
    localparam int unsigned COUNTERS = 10;
    localparam int unsigned SIZES = PATH | DESTINATION << 8 | FLOW << 16 | POOL << 24;
    // From an operation on the paths to the chooser, and through it; to the rate unit.
    localparam int unsigned TO_CHOOSER = 2, CHOICE = 13 + 2 * PATH, TO_RATE = 4 + PATH;

    // Registers, time and commands.
    logic        answer_probes, answer_data, to_share, choose, command_valid, command_done;
    logic [31:0] clock_step, argument0, argument1, argument2;
    logic [39:0] line_rate, floor_rate, rate_read;
    logic [3:0]  command;
    logic [63:0] now;
    logic [COUNTERS-1:0] counts;
    logic [POOL:0] rings_free;
    laps_registers #(.SIZES(SIZES), .COUNTERS(COUNTERS)) registers (
        .clk,
        .reset,
        .awvalid,
        .awready,
        .awaddr,
        .wvalid,
        .wready,
        .wdata,
        .wstrb,
        .bvalid,
        .bready,
        .bresp,
        .arvalid,
        .arready,
        .araddr,
        .rvalid,
        .rready,
        .rdata,
        .rresp,
        .answer_probes,
        .answer_data,
        .to_share,
        .choose,
        .clock_step,
        .line(line_rate),
        .floor(floor_rate),
        .command_valid,
        .command_ready(command_done),
        .command,
        .argument0,
        .argument1,
        .argument2,
        .clock(now),
        .rate(rate_read),
        .rings_free(16'(rings_free)),
        .counts
    );
    logic [15:1] commands;
    always_comb begin
        for (int i = 1; i < 16; i++) commands[i] = command_valid && command == 4'(i);
    end
    logic [DESTINATION-1:0] told_destination;
    logic [PATH-1:0]        told_path;
    assign told_destination = argument0[DESTINATION-1:0];
    assign told_path = argument0[16+:PATH];
    laps_clock clock (.clk, .reset, .step(clock_step), .set(commands[8] && command_done), .set_to({argument1, argument0}), .now);

    // Everything is clear.
    logic clear, chooser_ready, paths_ready, extremes_ready, search_ready;
    assign clear = chooser_ready && paths_ready && extremes_ready && search_ready;

    // From the line.
    logic         answer_valid, answer_ready, flow_done, heard_valid, heard_ready, heard_ack;
    logic         decided, decided_accepted, decided_answered;
    logic [488:0] answer;
    logic [23:0]  heard_qp, heard_delay;
    logic [31:0]  heard_address;
    logic [15:0]  heard_path;
    logic [39:0]  heard_stamp;
    laps_receive #(.FLOW(FLOW), .BUFFER(RECEIVE_BUFFER)) receive (
        .clk,
        .reset,
        .now,
        .answer_probes,
        .answer_data,
        .open_valid(commands[5]),
        .open_ready(flow_done),
        .open_up(argument2[0]),
        .open_flow(argument0[FLOW-1:0]),
        .open_psn(argument1[23:0]),
        .mac_valid(mac_in_valid),
        .mac_ready(mac_in_ready),
        .mac_last(mac_in_last),
        .mac_data(mac_in_data),
        .mac_keep(mac_in_keep),
        .host_valid(host_out_valid),
        .host_ready(host_out_ready),
        .host_last(host_out_last),
        .host_data(host_out_data),
        .host_keep(host_out_keep),
        .host_user(host_out_user),
        .answer_valid,
        .answer_ready,
        .answer,
        .heard_valid,
        .heard_ready,
        .heard_ack,
        .heard_qp,
        .heard_address,
        .heard_path,
        .heard_delay,
        .heard_stamp,
        .decided,
        .decided_accepted,
        .decided_answered
    );

    // Whose path it is; what is of no path of a known destination ends here.
    logic                   heard, found_valid, found, known, is_path, ack2;
    logic [DESTINATION-1:0] found_destination;
    logic [PATH-1:0]        path2;
    logic [FLOW-1:0]        flow2;
    logic                   flow_ok2;
    logic [23:0]            delay2;
    logic [39:0]            stamp2;
    logic [4:0]             measured_free, echoes_free;
    assign heard_ready = measured_free > 5'd4 && echoes_free > 5'd4 && clear;
    assign heard = heard_valid && heard_ready;
    laps_search #(.SEARCH(SEARCH), .DESTINATION(DESTINATION)) search (
        .clk,
        .reset,
        .ready(search_ready),
        .write(commands[3]),
        .write_way(argument2[0]),
        .write_up(argument2[1]),
        .write_address(argument1),
        .write_destination(told_destination),
        .in_valid(heard),
        .in_address(heard_address),
        .out_valid(found_valid),
        .out_found(found),
        .out_destination(found_destination)
    );
    laps_delay #(.WIDTH(1 + PATH + 1 + FLOW + 1 + 24 + 40), .CLOCKS(2)) heard_beside (
        .clk,
        .d({heard_path[15:PATH] == '0, heard_path[PATH-1:0], heard_ack, heard_qp[FLOW-1:0], heard_qp[23:FLOW] == '0, heard_delay,
            heard_stamp}),
        .q({is_path, path2, ack2, flow2, flow_ok2, delay2, stamp2})
    );
    assign known = found_valid && found && is_path;

    logic                   measured_valid, measured_ready, measured_room, measured_rates;
    logic [DESTINATION-1:0] measured_destination;
    logic [PATH-1:0]        measured_path;
    logic [FLOW-1:0]        measured_flow;
    logic [23:0]            measured_delay;
    laps_fifo #(.WIDTH(LEAF + 1 + FLOW + 24), .DEPTH(4)) measured (
        .clk,
        .reset,
        .in_valid(known),
        .in_ready(measured_room),
        .in_data({found_destination, path2, ack2 && flow_ok2, flow2, delay2}),
        .out_valid(measured_valid),
        .out_ready(measured_ready),
        .out_data({measured_destination, measured_path, measured_rates, measured_flow, measured_delay}),
        .free_count(measured_free)
    );
    logic            echo_valid, echo_ready, echo_room;
    logic [LEAF-1:0] echo_path;
    logic [39:0]     echo_stamp;
    // Packets that had left before the echo came, counted in 8 bits.
    logic [7:0]      left_count, echo_after;
    laps_fifo #(.WIDTH(8 + LEAF + 40), .DEPTH(4)) echoes (
        .clk,
        .reset,
        .in_valid(known && ack2),
        .in_ready(echo_room),
        .in_data({left_count, found_destination, path2, stamp2}),
        .out_valid(echo_valid),
        .out_ready(echo_ready),
        .out_data({echo_after, echo_path, echo_stamp}),
        .free_count(echoes_free)
    );

    // The order of operations.
    localparam logic [1:0] MEASURED = 0, TOLD = 1, LOOK = 2, SWEEP = 3;
    logic                   ask_valid, ask_ready, ask_again;
    logic [DESTINATION-1:0] ask_destination;
    logic                   tells, measures, looks, agains, sweeps, has_room;
    logic [PATH-1:0]        first_look;
    logic [LEAF-1:0]        sweep_at;
    logic [5:0]             sweep_wait;
    assign tells = clear && commands[2];
    assign measures = clear && !tells && measured_valid;
    assign ask_ready = clear && !tells && !measures && has_room;
    assign looks = ask_valid && ask_ready && !ask_again;
    assign agains = ask_valid && ask_ready && ask_again;
    assign sweeps = ask_ready && !ask_valid && sweep_wait == '1;
    assign measured_ready = measures;
    always_ff @(posedge clk) begin
        if (looks) first_look <= first_look + PATH'(4);
        if (sweeps) sweep_at <= sweep_at + 1'b1;
        if (sweeps || sweep_wait != '1) sweep_wait <= sweep_wait + 1'b1;
        if (reset) begin
            first_look <= '0;
            sweep_at <= '0;
            sweep_wait <= '0;
        end
    end

    logic                   path_valid, path_probe, path_up;
    logic [DESTINATION-1:0] path_destination;
    logic [PATH-1:0]        path_path;
    logic [23:0]            path_delay;
    logic                   op_valid;
    logic [1:0]             op;
    logic [DESTINATION-1:0] op_destination;
    logic [PATH-1:0]        op_path;
    always_comb begin
        op_valid = tells || measures || looks || sweeps;
        op = SWEEP;
        {op_destination, op_path} = sweep_at;
        if (tells) begin
            op = TOLD;
            {op_destination, op_path} = {told_destination, told_path};
        end else if (measures) begin
            op = MEASURED;
            {op_destination, op_path} = {measured_destination, measured_path};
        end else if (looks) begin
            op = LOOK;
            {op_destination, op_path} = {ask_destination, first_look};
        end
    end
    laps_paths #(.PATH(PATH), .DESTINATION(DESTINATION)) paths (
        .clk,
        .reset,
        .now(now[41:10]),
        .in_ready(paths_ready),
        .in_valid(op_valid),
        .in_operation(op),
        .in_destination(op_destination),
        .in_path(op_path),
        .in_up(argument1[0]),
        .in_delay(tells ? argument2[23:0] : measured_delay),
        .out_valid(path_valid),
        .out_probe(path_probe),
        .out_destination(path_destination),
        .out_path(path_path),
        .out_up(path_up),
        .out_delay(path_delay)
    );

    // Beside the path state, to the chooser: choices wait for a clock without a change, four at most with those on their way.
    logic                   looks2, agains2, measures2, chooses;
    logic [DESTINATION-1:0] asked2;
    laps_delay #(.WIDTH(3 + DESTINATION), .CLOCKS(TO_CHOOSER)) ops (
        .clk,
        .d({looks, agains, measures, ask_destination}),
        .q({looks2, agains2, measures2, asked2})
    );
    logic [2:0]                   asked, waiting, left;
    logic [4*(DESTINATION+1)-1:0] choosing;
    logic                         chooses_again;
    logic [DESTINATION-1:0]       choosing_destination;
    assign {chooses_again, choosing_destination} = choosing[DESTINATION:0];
    assign chooses = waiting != '0 && !path_valid;
    assign left = waiting - {2'b0, chooses};
    assign has_room = !asked[2];
    always_ff @(posedge clk) begin
        asked <= asked + {2'b0, looks || agains} - {2'b0, chooses};
        waiting <= left + {2'b0, looks2 || agains2};
        if (chooses) choosing <= choosing >> (DESTINATION + 1);
        for (int i = 0; i < 4; i++) begin
            if ((looks2 || agains2) && left == 3'(i)) choosing[i*(DESTINATION+1)+:DESTINATION+1] <= {agains2, asked2};
        end
        if (reset) {asked, waiting} <= '0;
    end
    logic                   choice_valid, choice_update, choice_none, again;
    logic [DESTINATION-1:0] choice_destination;
    logic [PATH-1:0]        choice_path;
    laps_chooser #(.PATH(PATH), .DESTINATION(DESTINATION), .TABLE(TABLE)) chooser (
        .clk,
        .reset,
        .seed_write(commands[7] && command_done),
        .seed({argument1, argument0}),
        .scale_write(commands[1]),
        .scale_destination(told_destination),
        .scale_factor(argument1[17:0]),
        .scale_reference(argument2[23:0]),
        .in_ready(chooser_ready),
        .in_valid(chooses || path_valid),
        .in_update(path_valid),
        .in_destination(path_valid ? path_destination : choosing_destination),
        .in_path(path_path),
        .in_up(path_up),
        .in_delay(path_delay),
        .out_valid(choice_valid),
        .out_update(choice_update),
        .out_destination(choice_destination),
        .out_path(choice_path),
        .out_none(choice_none)
    );
    laps_delay #(.WIDTH(1), .CLOCKS(CHOICE)) agains_through (.clk, .d(chooses && chooses_again), .q(again));

    // To the line.
    logic            sent_valid, sent_ready, counts_probe, counts_none;
    logic [LEAF-1:0] sent_path;
    logic [15:0]     sent_flow;
    logic [23:0]     sent_psn;
    logic [39:0]     sent_stamp;
    laps_transmit #(.PATH(PATH), .DESTINATION(DESTINATION), .BUFFER(TRANSMIT_BUFFER)) transmit (
        .clk,
        .reset,
        .now,
        .choose,
        .host_valid(host_in_valid),
        .host_ready(host_in_ready),
        .host_last(host_in_last),
        .host_data(host_in_data),
        .host_keep(host_in_keep),
        .host_user(host_in_user),
        .answer_valid,
        .answer_ready,
        .answer,
        .ask_valid,
        .ask_ready,
        .ask_again,
        .ask_destination,
        .look_valid(looks2),
        .look_probe(path_valid && path_probe),
        .look_destination(path_destination),
        .look_path(path_path),
        .choice_valid(choice_valid && !choice_update),
        .choice_again(again),
        .choice_none,
        .choice_destination,
        .choice_path,
        .port_write(commands[4]),
        .port_address({told_destination, told_path}),
        .port(argument1[15:0]),
        .rings_room(rings_free > (POOL + 1)'(20)),
        .sent_valid,
        .sent_ready,
        .sent_path,
        .sent_flow,
        .sent_psn,
        .sent_stamp,
        .line_valid(mac_out_valid),
        .line_ready(mac_out_ready),
        .line_last(mac_out_last),
        .line_data(mac_out_data),
        .line_keep(mac_out_keep),
        .counts_probe,
        .counts_none
    );

    // Loss rings: what leaves and what is heard by turns, but an echo after all that had left when it came.
    logic            ring_ready, ring_full, ring_valid, lost, out_valid, out_ready, lost_room;
    logic [1:0]      ring_op;
    logic [LEAF-1:0] ring_path, out_path, lost_path;
    logic [15:0]     out_flow, lost_flow;
    logic [23:0]     out_psn, lost_psn;
    logic [39:0]     out_stamp, lost_stamp, ring_stamp;
    logic [4:0]      sents_free;
    laps_fifo #(.WIDTH(LEAF + 16 + 24 + 40), .DEPTH(4)) sents (
        .clk,
        .reset,
        .in_valid(sent_valid),
        .in_ready(sent_ready),
        .in_data({sent_path, sent_flow, sent_psn, sent_stamp}),
        .out_valid,
        .out_ready,
        .out_data({out_path, out_flow, out_psn, out_stamp}),
        .free_count(sents_free)
    );
    // How many of these the rings have; fewer than 128 go to them while an echo waits.
    logic [7:0] told_count, echo_ahead;
    logic       expires, echoes_go, sents_go, sents_last;
    assign echo_ahead = told_count - echo_after;
    assign echoes_go = echo_valid && !echo_ahead[7] && !(commands[6] && !out_valid) && (sents_last || !out_valid);
    assign sents_go = out_valid && !echoes_go;
    assign expires = commands[6] && ring_ready && !out_valid;
    assign out_ready = ring_ready && sents_go;
    assign echo_ready = ring_ready && echoes_go;
    assign ring_valid = out_valid || commands[6] || echoes_go;
    assign ring_op = sents_go ? 2'd0 : echoes_go ? 2'd1 : 2'd2;
    assign ring_path = sents_go ? out_path : echoes_go ? echo_path : {told_destination, told_path};
    assign ring_stamp = sents_go ? out_stamp : echo_stamp;
    always_ff @(posedge clk) begin
        if (sent_valid && sent_ready) left_count <= left_count + 1'b1;
        if (out_valid && out_ready) told_count <= told_count + 1'b1;
        if (ring_ready) sents_last <= sents_go;
        if (reset) {left_count, told_count, sents_last} <= '0;
    end
    laps_rings #(.POOL(POOL), .PATHS(LEAF)) rings (
        .clk,
        .reset,
        .in_ready(ring_ready),
        .full(ring_full),
        .in_valid(ring_valid),
        .in_operation(ring_op),
        .in_path(ring_path),
        .in_queue_pair(out_flow),
        .in_psn(out_psn),
        .in_stamp(ring_stamp),
        .out_lost(lost),
        .out_path(lost_path),
        .out_queue_pair(lost_flow),
        .out_psn(lost_psn),
        .out_stamp(lost_stamp),
        .free_count(rings_free)
    );
    logic [EVENT:0] events_free;
    laps_fifo #(.WIDTH(LEAF + 80), .DEPTH(EVENT)) events (
        .clk,
        .reset,
        .in_valid(lost),
        .in_ready(lost_room),
        .in_data({lost_stamp, lost_psn, lost_flow, lost_path}),
        .out_valid(event_valid),
        .out_ready(event_ready),
        .out_data({event_data[111:32], event_data[LEAF-1:0]}),
        .free_count(events_free)
    );
    assign event_data[31:LEAF] = '0;
    assign event_data[127:112] = '0;

    // Rates: of an acknowledgement the extremes of its destination, and the destination's threshold.
    logic                   extremes_valid, extremes_known, rates_ack, rate_ack, rate_open, rate_valid;
    logic [23:0]            fastest, slowest, threshold;
    logic [FLOW-1:0]        rate_flow, acked_flow;
    logic [39:0]            rate_current;
    logic [DESTINATION-1:0] acked_destination;
    laps_extremes #(.PATH(PATH), .DESTINATION(DESTINATION)) extremes (
        .clk,
        .reset,
        .in_ready(extremes_ready),
        .in_valid(path_valid),
        .in_destination(path_destination),
        .in_path(path_path),
        .in_known(measures2 && path_up),
        .in_delay(path_delay),
        .out_valid(extremes_valid),
        .out_known(extremes_known),
        .out_fastest(fastest),
        .out_slowest(slowest)
    );
    laps_delay #(.WIDTH(1 + FLOW), .CLOCKS(TO_RATE)) acks (
        .clk,
        .d({measures && measured_rates, measured_flow}),
        .q({rates_ack, acked_flow})
    );
    laps_delay #(.WIDTH(DESTINATION), .CLOCKS(TO_RATE - 1)) acked (.clk, .d(measured_destination), .q(acked_destination));
    laps_ram #(.WIDTH(24), .ADDRESS(DESTINATION)) thresholds (
        .clk,
        .write(commands[10]),
        .write_address(told_destination),
        .write_data(argument1[23:0]),
        .read_address(acked_destination),
        .read_data(threshold)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    assign rate_ack = rates_ack && extremes_valid && extremes_known;
    assign rate_open = commands[9] && !rate_ack;
    laps_rate #(.FLOW(FLOW)) rates (
        .clk,
        .reset,
        .line(line_rate),
        .floor(floor_rate),
        .to_share,
        .in_valid(rate_ack || rate_open),
        .in_open(!rate_ack),
        .in_flow(rate_ack ? acked_flow : argument0[FLOW-1:0]),
        .in_now(now[57:10]),
        .in_fastest(fastest),
        .in_slowest(slowest),
        .in_threshold(threshold),
        .out_valid(rate_valid),
        .out_flow(rate_flow),
        .out_current(rate_current)
    );
    laps_ram #(.WIDTH(40), .ADDRESS(FLOW)) currents (
        .clk,
        .write(rate_valid),
        .write_address(rate_flow),
        .write_data(rate_current),
        .read_address(argument0[FLOW-1:0]),
        .read_data(rate_read)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );

    always_comb begin
        case (command)
            4'd2: command_done = tells;
            4'd5: command_done = flow_done;
            4'd6: command_done = expires;
            4'd9: command_done = rate_open;
            default: command_done = search_ready;
        endcase
    end
    assign counts = {lost && !lost_room, lost, counts_probe, counts_none, mac_out_valid && mac_out_ready && mac_out_last,
                     found_valid && !known, heard, decided && decided_answered, decided && !decided_accepted, decided};
endmodule
