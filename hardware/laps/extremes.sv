// The fastest and the slowest path of each destination: `Extremes` of the crate `hardware`. Each operation says what is known of a
// path, and leaves with the shortest and longest delay that are known then.
//
// A destination's delays are one word, so this is meant for 8 or 16 paths; with 64 the memory takes as much as all others.
//
// Latency: 2 + PATH clocks from `in_valid` to `out_valid`, in order. Initiation interval: 1.
// Hazards: the word is read in the clock in which the operation before may write it, which is forwarded. After `reset` nothing is
// known, in 2^DESTINATION clocks with `in_ready` low.
module laps_extremes #(
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 10
) (
    input  logic                   clk,
    input  logic                   reset,
    output logic                   in_ready,
    input  logic                   in_valid,
    input  logic [DESTINATION-1:0] in_destination,
    input  logic [PATH-1:0]        in_path,
    // It is up and has been measured.
    input  logic                   in_known,
    input  logic [23:0]            in_delay,

    output logic                   out_valid,
    // Any path's delay is known.
    output logic                   out_known,
    output logic [23:0]            out_fastest,
    output logic [23:0]            out_slowest
);
    localparam int unsigned PATHS = 1 << PATH;
    logic                   clearing;
    logic [DESTINATION-1:0] clear_destination;
    assign in_ready = !clearing;
    always_ff @(posedge clk) begin
        if (reset) begin
            clearing <= 1'b1;
            clear_destination <= '0;
        end else if (clearing) begin
            clear_destination <= clear_destination + 1'b1;
            clearing <= clear_destination != '1;
        end
    end

    // Clock 1: the word is there, and changed.
    logic                   valid, known, last;
    logic [DESTINATION-1:0] destination, last_destination;
    logic [PATH-1:0]        path;
    logic [23:0]            delay;
    logic [25*PATHS-1:0]    stored, entry, changed, last_entry;
    assign entry = last && last_destination == destination ? last_entry : stored;
    always_comb begin
        changed = entry;
        changed[25*path+:25] = {known, delay};
    end
    laps_ram #(.WIDTH(25 * PATHS), .ADDRESS(DESTINATION)) words (
        .clk,
        .write(clearing || valid),
        .write_address(clearing ? clear_destination : destination),
        .write_data(clearing ? '0 : changed),
        .read_address(in_destination),
        .read_data(stored)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    always_ff @(posedge clk) begin
        valid <= in_valid && in_ready && !reset;
        destination <= in_destination;
        path <= in_path;
        known <= in_known;
        delay <= in_delay;
        last <= valid;
        last_destination <= destination;
        last_entry <= changed;
    end

    // From clock 2 on: pairs, pairs of pairs, and so on.
    generate
        for (genvar l = 0; l <= PATH; l++) begin : level
            logic                     is_valid;
            logic [(PATHS>>l)-1:0]    some;
            logic [24*(PATHS>>l)-1:0] least, most;
            if (l == 0) begin : words
                assign is_valid = last;
                for (genvar i = 0; i < PATHS; i++) begin : each
                    assign some[i] = last_entry[25*i+24];
                    assign least[24*i+:24] = last_entry[25*i+:24];
                    assign most[24*i+:24] = last_entry[25*i+:24];
                end
            end else begin : pairs
                always_ff @(posedge clk) is_valid <= level[l-1].is_valid && !reset;
                for (genvar i = 0; i < PATHS >> l; i++) begin : each
                    logic        a, b, first_least, first_most;
                    logic [23:0] a_least, b_least, a_most, b_most;
                    assign {b, a} = level[l-1].some[2*i+:2];
                    assign {b_least, a_least} = level[l-1].least[48*i+:48];
                    assign {b_most, a_most} = level[l-1].most[48*i+:48];
                    assign first_least = a && (!b || a_least <= b_least);
                    assign first_most = a && (!b || a_most >= b_most);
                    always_ff @(posedge clk) begin
                        some[i] <= a || b;
                        least[24*i+:24] <= first_least ? a_least : b_least;
                        most[24*i+:24] <= first_most ? a_most : b_most;
                    end
                end
            end
        end
    endgenerate
    assign out_valid = level[PATH].is_valid;
    assign out_known = level[PATH].some;
    assign out_fastest = level[PATH].least;
    assign out_slowest = level[PATH].most;
endmodule
