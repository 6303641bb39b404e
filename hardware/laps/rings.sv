// What is under way on each path, in the order sent, and what is lost by that order: `Rings` of the crate `hardware` says what each
// operation does. All rings are lists in one pool.
//
// Operations: SENT (a packet leaves on a path), HEARD (an acknowledgement echoes a stamp), EXPIRED (all of a path is lost).
//
// Latency: `out_lost` tells lost packets from 3 clocks after their operation on, one a clock, oldest first.
// Initiation interval: an operation begins when `in_ready` is high; SENT takes 2 clocks, HEARD and EXPIRED 3 and one more for each
// packet that is lost. That is too slow for a line full of least frames (2.2 clocks each way), and enough for
// packets of 256 bytes and more.
// Hazards: none, for one operation ends before the next begins. `full` is high while a SENT would find no room; it is ignored then.
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

    typedef enum logic [1:0] {CLEARING, READY, RING, ENTRY} state_t;
    state_t state;

    logic [CLEAR-1:0] clear_address;
    logic [1:0]       operation;
    logic [PATHS-1:0] path;
    logic [15:0]      queue_pair;
    logic [23:0]      psn;
    logic [39:0]      stamp;
    // The first entry that holds no packet.
    logic [POOL-1:0]  free;
    logic             some_free;
    assign full = free_count == '0;
    assign some_free = !full;
    assign in_ready = state == READY;

    // Of each path: whether there is anything, the oldest, the newest.
    logic [2*POOL:0] ring_read, ring_write_data;
    logic            ring_write, ring_some;
    logic [POOL-1:0] ring_head, ring_tail;
    logic [PATHS-1:0] ring_write_address;
    assign {ring_some, ring_head, ring_tail} = ring_read;
    laps_ram #(.WIDTH(2*POOL+1), .ADDRESS(PATHS)) rings (
        .clk,
        .write(ring_write),
        .write_address(ring_write_address),
        .write_data(ring_write_data),
        .read_address(in_path),
        .read_data(ring_read)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );

    // Of each entry: the packet, and the entry behind it, in its ring or among those that are free.
    logic [79:0]     packet_read;
    logic            packet_write, next_write;
    logic [POOL-1:0] read_entry, next_read, next_write_address, next_write_data;
    laps_ram #(.WIDTH(80), .ADDRESS(POOL)) packets (
        .clk,
        .write(packet_write),
        .write_address(free),
        .write_data({queue_pair, psn, stamp}),
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

    // The ring under way, while its packets leave.
    logic [POOL-1:0] head, tail;
    logic            some, leaves, lost, sends;
    assign sends = state == RING && operation == SENT && some_free;
    assign lost = some && (operation != HEARD || packet_read[39:0] < stamp);
    assign leaves = state == ENTRY && some && (lost || packet_read[39:0] == stamp);

    always_comb begin
        // A free entry is looked up before an operation, the oldest of the ring after it.
        read_entry = free;
        if (state == RING && operation != SENT) read_entry = ring_head;
        if (state == ENTRY) read_entry = next_read;

        packet_write = sends;
        next_write = 1'b0;
        next_write_address = clear_address[POOL-1:0];
        next_write_data = clear_address[POOL-1:0] + 1'b1;
        if (state == CLEARING) next_write = 1'b1;
        else if (sends && ring_some) begin
            next_write = 1'b1;
            next_write_address = ring_tail;
            next_write_data = free;
        end else if (leaves) begin
            next_write = 1'b1;
            next_write_address = head;
            next_write_data = free;
        end

        ring_write = 1'b0;
        ring_write_address = path;
        ring_write_data = {1'b1, ring_some ? ring_head : free, free};
        if (state == CLEARING) begin
            ring_write = 1'b1;
            ring_write_address = clear_address[PATHS-1:0];
            ring_write_data = '0;
        end else if (sends) ring_write = 1'b1;
        else if (state == ENTRY && !(leaves && lost)) begin
            ring_write = 1'b1;
            ring_write_data = {some && !(leaves && head == tail), leaves ? next_read : head, tail};
        end
    end

    always_ff @(posedge clk) begin
        out_lost <= leaves && lost && !reset;
        out_path <= path;
        {out_queue_pair, out_psn, out_stamp} <= packet_read;
        case (state)
            CLEARING: begin
                clear_address <= clear_address + 1'b1;
                if (clear_address == '1) state <= READY;
            end
            READY: if (in_valid) begin
                state <= RING;
                operation <= in_operation;
                path <= in_path;
                queue_pair <= in_queue_pair;
                psn <= in_psn;
                stamp <= in_stamp;
            end
            RING: begin
                state <= operation == SENT ? READY : ENTRY;
                head <= ring_head;
                tail <= ring_tail;
                some <= ring_some;
                if (sends) begin
                    free <= next_read;
                    free_count <= free_count - 1'b1;
                end
            end
            default: begin
                if (leaves) begin
                    free <= head;
                    free_count <= free_count + 1'b1;
                    head <= next_read;
                    some <= head != tail;
                end
                if (!(leaves && lost)) state <= READY;
            end
        endcase
        if (reset) begin
            state <= CLEARING;
            clear_address <= '0;
            free <= '0;
            free_count <= {1'b1, {POOL{1'b0}}};
        end
    end
endmodule
