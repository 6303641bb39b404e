// What is under way on each path, in the order sent, and what is lost by that order: `Rings` of the crate `hardware` says what each
// operation does. All rings are lists in one pool.
//
// Operations: SENT (a packet leaves on a path), HEARD (an acknowledgement echoes a stamp), EXPIRED (all of a path is lost).
//
// Latency: `out_lost` tells lost packets from 4 clocks after their operation on, one in 2 clocks, oldest first.
// Initiation interval: an operation is taken when `in_ready` is high. SENT and the others by turns are 1 clock each, two of a kind one
// after the other 2 clocks, and so are two of the same path. Each lost packet is 2 clocks more, in which nothing else begins.
// Hazards: an operation waits until the one before on its path is about to write the ring; this write is forwarded. Operations that
// find a packet lost hold the next one back until they have ended. `full` is high while a SENT would find no room; it is ignored
// then, unless the operation before makes room. `free_count` is behind by what has been taken in the last 3 clocks.
// After `reset` the pool is made anew, in 2^max(POOL, PATHS) clocks.
module laps_rings #(
    // Packets are 2^POOL, paths of all destinations together 2^PATHS.
    parameter int unsigned POOL = 14,
    parameter int unsigned PATHS = 13
) (
    input  logic             clk,
    input  logic             reset,

    output logic             in_ready,
    output logic             full,
    input  logic             in_valid,
    // 0 SENT, 1 HEARD, 2 EXPIRED.
    input  logic [1:0]       in_operation,
    input  logic [PATHS-1:0] in_path,
    input  logic [15:0]      in_queue_pair,
    input  logic [23:0]      in_psn,
    // SENT: when; HEARD: the echo. Ticks.
    input  logic [39:0]      in_stamp,

    output logic             out_lost,
    output logic [PATHS-1:0] out_path,
    output logic [15:0]      out_queue_pair,
    output logic [23:0]      out_psn,
    output logic [39:0]      out_stamp,
    // Entries that hold no packet.
    output logic [POOL:0]    free_count
);
    localparam logic [1:0] SENT = 0, HEARD = 1;
    localparam int unsigned CLEAR = POOL > PATHS ? POOL : PATHS;

    logic             clearing;
    logic [CLEAR-1:0] clear_address;

    // Clock 1: an operation waits here until those before let it go; its ring is read.
    logic             held, goes;
    logic [1:0]       operation1;
    logic [PATHS-1:0] path1;
    logic [79:0]      packet1;
    // Clock 2: the ring is there; its oldest packet is read, or an entry is taken.
    logic             valid2, acts, takes, has_room;
    logic [1:0]       operation2;
    logic [PATHS-1:0] path2;
    logic [79:0]      packet2;
    // Clock 3 of SENT: the packet is written, in an entry that was free or has just become so.
    logic             sends, reuses, some3;
    logic [PATHS-1:0] path3;
    logic [79:0]      packet3;
    logic [POOL-1:0]  entry3, head3, tail3;
    // Clock 3 of the others: the oldest packet is there. If it is lost, the next one is read in a clock and there in another.
    logic             compares, rereads, continues, is_heard, some, lost, leaves, more;
    logic [PATHS-1:0] path;
    logic [39:0]      echo;
    logic [POOL-1:0]  head, tail;

    // While packets after the first are being lost, what is in clock 2 waits there.
    logic waits;
    assign waits = rereads || continues;
    assign goes = held && !(valid2 && (waits || path2 == path1 || (operation2 == SENT) == (operation1 == SENT)));
    assign acts = valid2 && !waits;
    assign in_ready = !clearing && (!held || goes);

    // Of each path: whether there is anything, the oldest, the newest.
    logic [2*POOL:0]  ring_read, ring_write_data, last_ring;
    logic             ring_write, last_written, ring_some;
    logic [POOL-1:0]  ring_head, ring_tail;
    logic [PATHS-1:0] ring_write_address, last_path;
    assign {ring_some, ring_head, ring_tail} = last_written && last_path == path2 ? last_ring : ring_read;
    laps_ram #(.WIDTH(2*POOL+1), .ADDRESS(PATHS)) rings (
        .clk,
        .write(ring_write),
        .write_address(ring_write_address),
        .write_data(ring_write_data),
        .read_address(goes ? path1 : path2),
        .read_data(ring_read)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );

    // Of each entry: the packet, and the entry behind it, in its ring or among those that are free.
    logic [79:0]     packet_read;
    logic            next_write;
    logic [POOL-1:0] free, read_entry, next_read, next_write_address, next_write_data;
    laps_ram #(.WIDTH(80), .ADDRESS(POOL)) packets (
        .clk,
        .write(sends),
        .write_address(entry3),
        .write_data(packet3),
        .read_address(read_entry),
        .read_data(packet_read)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    laps_ram #(.WIDTH(POOL), .ADDRESS(POOL)) nexts (
        .clk,
        .write(next_write),
        .write_address(next_write_address),
        .write_data(next_write_data),
        .read_address(read_entry),
        .read_data(next_read)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    assign full = free_count == '0;
    assign lost = some && (!is_heard || packet_read[39:0] < echo);
    assign leaves = compares && some && (lost || packet_read[39:0] == echo);
    assign more = leaves && lost && head != tail;
    // A packet that leaves makes room for the one that is sent in this clock.
    assign takes = acts && operation2 == SENT;
    assign has_room = leaves || !full;

    // SENT and the others are never in clock 3 at once.
    always_comb begin
        read_entry = operation2 == SENT ? free : ring_head;
        if (rereads) read_entry = head;

        next_write = 1'b0;
        next_write_address = clear_address[POOL-1:0];
        next_write_data = clear_address[POOL-1:0] + 1'b1;
        if (clearing) next_write = 1'b1;
        else if (sends) begin
            next_write = some3;
            next_write_address = tail3;
            next_write_data = entry3;
        end else if (leaves) begin
            next_write = 1'b1;
            next_write_address = head;
            next_write_data = free;
        end

        ring_write = 1'b0;
        ring_write_address = path;
        ring_write_data = {some && !(leaves && head == tail), leaves ? next_read : head, tail};
        if (clearing) begin
            ring_write = 1'b1;
            ring_write_address = clear_address[PATHS-1:0];
            ring_write_data = '0;
        end else if (sends) begin
            ring_write = 1'b1;
            ring_write_address = path3;
            ring_write_data = {1'b1, some3 ? head3 : entry3, entry3};
        end else if (compares) ring_write = !more;
    end

    always_ff @(posedge clk) begin
        if (in_ready) begin
            held <= in_valid;
            operation1 <= in_operation;
            path1 <= in_path;
            packet1 <= {in_queue_pair, in_psn, in_stamp};
        end

        if (goes || acts) valid2 <= goes;
        if (goes) begin
            operation2 <= operation1;
            path2 <= path1;
            packet2 <= packet1;
        end
        last_written <= ring_write;
        last_path <= ring_write_address;
        last_ring <= ring_write_data;

        sends <= takes && has_room;
        reuses <= leaves;
        path3 <= path2;
        packet3 <= packet2;
        entry3 <= leaves ? head : free;
        {some3, head3, tail3} <= {ring_some, ring_head, ring_tail};

        compares <= rereads || (acts && operation2 != SENT);
        continues <= rereads;
        rereads <= more;
        if (acts && operation2 != SENT) begin
            is_heard <= operation2 == HEARD;
            path <= path2;
            echo <= packet2[39:0];
            {some, head, tail} <= {ring_some, ring_head, ring_tail};
        end else if (more) head <= next_read;
        out_lost <= leaves && lost && !reset;
        out_path <= path;
        {out_queue_pair, out_psn, out_stamp} <= packet_read;

        if (sends && !reuses) free <= next_read;
        if (leaves && !takes) free <= head;
        free_count <= free_count + {{POOL{1'b0}}, leaves} - {{POOL{1'b0}}, takes && has_room};

        clear_address <= clear_address + 1'b1;
        if (clear_address == '1) clearing <= 1'b0;
        if (reset) begin
            clearing <= 1'b1;
            clear_address <= '0;
            free <= '0;
            free_count <= {1'b1, {POOL{1'b0}}};
            {held, valid2, sends, compares, continues, rereads} <= '0;
        end
    end
endmodule
