// The softmax: keeps the weight of each path of each destination, and draws paths in proportion to them.
//
// One operation a clock: an update (a path has a delay, or is down) or a choice (a path for a packet). Operations take effect in
// the order in which they enter; each sees exactly those before it.
//
// Latency: 13 + 2 PATH clocks from `in_valid` to `out_valid`, in order: 19, 25 and 29 for 8, 64 and 256 paths.
// Initiation interval: 1. Nothing stalls inside, so what enters must be taken when it leaves.
// Hazards: leaf, total and each level read what the operation one clock before may write, and forward that one write. After
// `reset` all weights are set to 0 for 2^(DESTINATION + PATH) clocks, in which `in_ready` is low; scales stay as they are.
module laps_chooser #(
    // Paths of a destination are 2^PATH, at least 2; destinations are 2^DESTINATION.
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 10,
    parameter TABLE = "exp2.hex"
) (
    input  logic                   clk,
    input  logic                   reset,

    input  logic                   seed_write,
    input  logic [63:0]            seed,

    input  logic                   scale_write,
    input  logic [DESTINATION-1:0] scale_destination,
    input  logic [17:0]            scale_factor,
    input  logic [23:0]            scale_reference,

    output logic                   in_ready,
    input  logic                   in_valid,
    input  logic                   in_update,
    input  logic [DESTINATION-1:0] in_destination,
    // Of an update.
    input  logic [PATH-1:0]        in_path,
    input  logic                   in_up,
    input  logic [23:0]            in_delay,

    output logic                   out_valid,
    output logic                   out_update,
    output logic [DESTINATION-1:0] out_destination,
    output logic [PATH-1:0]        out_path,
    // A choice found no weight: hold the packet.
    output logic                   out_none
);
    localparam int unsigned SUM = 24 + PATH;
    localparam int unsigned LEAF = DESTINATION + PATH;

    // After reset, zeroes into every memory.
    logic            clearing;
    logic [LEAF-1:0] clear_address;
    assign in_ready = !clearing;
    always_ff @(posedge clk) begin
        if (reset) begin
            clearing <= 1'b1;
            clear_address <= '0;
        end else if (clearing) begin
            clear_address <= clear_address + 1'b1;
            clearing <= clear_address != '1;
        end
    end

    // Clocks 1 to 7: the weight of an update.
    logic        enters;
    logic [23:0] weight;
    assign enters = in_valid && in_ready && !reset;
    laps_weigher #(.DESTINATION(DESTINATION), .TABLE(TABLE)) weigher (
        .clk,
        .scale_write,
        .scale_destination,
        .scale_factor,
        .scale_reference,
        .in_destination,
        .in_up,
        .in_delay,
        .weight(weight)
    );
`ifdef FORMAL
    // What is proved holds for any weights and targets; multipliers would only be in the way.
    (* anyseq *) logic [23:0] weight7;
    (* anyseq *) logic [SUM+31:0] product12;
`else
    logic [23:0]     weight7;
    logic [SUM+31:0] product12;
    assign weight7 = weight;
`endif

    logic [6:1]             valid1to6;
    logic                   valid7, valid8, valid9, valid10;
    logic                   update6, update7, update8, update9, update10;
    logic [DESTINATION-1:0] destination7, destination8, destination9, destination10;
    logic [PATH-1:0]        path7, path8, path9, path10;
    laps_delay #(.WIDTH(1), .CLOCKS(6)) updates (.clk, .d(in_update), .q(update6));
    laps_delay #(.WIDTH(DESTINATION + PATH), .CLOCKS(7)) leaves1to7 (
        .clk,
        .d({in_destination, in_path}),
        .q({destination7, path7})
    );

    // Asked for in clock 6, there in clock 10.
    logic [31:0] draw10;
    laps_xoshiro generator (
        .clk, .seed_write, .seed, .advance(valid1to6[6] && !update6), .draw(draw10)
    );

    // Clocks 7 and 8: the leaf is read, and written.
    logic [23:0]     stored_leaf, old8, weight8, last_weight;
    logic [LEAF-1:0] last_leaf;
    logic            last_leaf_written;
    logic            leaf_write;
    assign leaf_write = valid8 && update8;
    assign old8 = last_leaf_written && last_leaf == {destination8, path8} ? last_weight : stored_leaf;
    laps_ram #(.WIDTH(24), .ADDRESS(LEAF)) leaves (
        .clk,
        .write(clearing || leaf_write),
        .write_address(clearing ? clear_address : {destination8, path8}),
        .write_data(clearing ? '0 : weight8),
        .read_address({destination7, path7}),
        .read_data(stored_leaf)
`ifdef FORMAL
        ,
        .watch(watch_leaf),
        .watched(watched_leaf)
`endif
    );

    // Clocks 8 and 9: the total of the destination, likewise.
    logic [SUM-1:0]         stored_total, total9, new_total9, difference9, last_total;
    logic [DESTINATION-1:0] last_destination;
    logic                   last_total_written;
    logic                   total_write;
    assign total_write = valid9 && update9;
    assign total9 = last_total_written && last_destination == destination9 ? last_total : stored_total;
    assign new_total9 = total9 + difference9;
    laps_ram #(.WIDTH(SUM), .ADDRESS(DESTINATION)) totals (
        .clk,
        .write(clearing || total_write),
        .write_address(clearing ? clear_address[DESTINATION-1:0] : destination9),
        .write_data(clearing ? '0 : new_total9),
        .read_address(destination8),
        .read_data(stored_total)
`ifdef FORMAL
        ,
        .watch(watch_total),
        .watched(watched_total)
`endif
    );

    // Clocks 10 to 13: where in the total a choice falls.
    logic [SUM-1:0]    total10, difference10;
    logic [SUM+31:0]   product11;
    logic              valid13, update13, none13;
    logic [DESTINATION-1:0] destination13;
    logic [PATH-1:0]   path13;
    logic [SUM-1:0]    difference12, amount13;
    logic              update12;
    laps_delay #(.WIDTH(DESTINATION + PATH), .CLOCKS(3)) leaves10to13 (
        .clk,
        .d({destination10, path10}),
        .q({destination13, path13})
    );
    laps_delay #(.WIDTH(1 + SUM), .CLOCKS(2)) differences (
        .clk,
        .d({update10, difference10}),
        .q({update12, difference12})
    );
    logic none10;
    assign none10 = !update10 && total10 == '0;
    laps_delay #(.WIDTH(1), .CLOCKS(3)) nones (.clk, .d(none10), .q(none13));
    logic valid11, valid12;

    always_ff @(posedge clk) begin
        valid1to6 <= reset ? '0 : {valid1to6[5:1], enters};
        valid7 <= valid1to6[6] && !reset;
        update7 <= update6;

        valid8 <= valid7 && !reset;
        update8 <= update7;
        destination8 <= destination7;
        path8 <= path7;
        weight8 <= weight7;

        valid9 <= valid8 && !reset;
        update9 <= update8;
        destination9 <= destination8;
        path9 <= path8;
        difference9 <= {{PATH{1'b0}}, weight8} - {{PATH{1'b0}}, old8};
        last_leaf_written <= leaf_write;
        last_leaf <= {destination8, path8};
        last_weight <= weight8;

        valid10 <= valid9 && !reset;
        update10 <= update9;
        destination10 <= destination9;
        // A choice finds its path level by level.
        path10 <= update9 ? path9 : '0;
        difference10 <= difference9;
        total10 <= total9;
        last_total_written <= total_write;
        last_destination <= destination9;
        last_total <= new_total9;

        valid11 <= valid10 && !reset;
        product11 <= total10 * draw10;
        valid12 <= valid11 && !reset;
`ifndef FORMAL
        product12 <= product11;
`endif
        valid13 <= valid12 && !reset;
        update13 <= update12;
        amount13 <= update12 ? difference12 : product12[SUM+31:32];
    end

    // Two clocks each: the levels, the root first.
    logic [PATH:0]                 valid, update;
    logic [(PATH+1)*DESTINATION-1:0] destination;
    logic [(PATH+1)*PATH-1:0]      path;
    logic [(PATH+1)*SUM-1:0]       amount;
    assign valid[0] = valid13;
    assign update[0] = update13;
    assign destination[DESTINATION-1:0] = destination13;
    assign path[PATH-1:0] = path13;
    assign amount[SUM-1:0] = amount13;
    generate
        for (genvar l = 0; l < PATH; l++) begin : level
            laps_chooser_level #(.PATH(PATH), .DESTINATION(DESTINATION), .LEVEL(l)) tree (
                .clk,
                .clear(clearing),
                .clear_address,
                .in_valid(valid[l] && !reset),
                .in_update(update[l]),
                .in_destination(destination[l*DESTINATION+:DESTINATION]),
                .in_path(path[l*PATH+:PATH]),
                .in_amount(amount[l*SUM+:SUM]),
                .out_valid(valid[l+1]),
                .out_update(update[l+1]),
                .out_destination(destination[(l+1)*DESTINATION+:DESTINATION]),
                .out_path(path[(l+1)*PATH+:PATH]),
                .out_amount(amount[(l+1)*SUM+:SUM])
            );
        end
    endgenerate
    laps_delay #(.WIDTH(1), .CLOCKS(2 * PATH)) none_out (.clk, .d(none13), .q(out_none));
    assign out_valid = valid[PATH];
    assign out_update = update[PATH];
    assign out_destination = destination[PATH*DESTINATION+:DESTINATION];
    assign out_path = path[PATH*PATH+:PATH];

`ifdef FORMAL
    (* anyconst *) logic [LEAF-1:0] watch_leaf;
    (* anyconst *) logic [DESTINATION-1:0] watch_total;
    logic [23:0]    watched_leaf, model_leaf;
    logic [SUM-1:0] watched_total, model_total;
    logic           begun;
    initial begin
        begun = 1'b0;
        sent = '0;
    end
    // What has entered, and when: valid, update, destination.
    logic [(13 + 2 * PATH) * (DESTINATION + 2)-1:0] sent;
    logic [DESTINATION+1:0] due;
    assign due = sent[(13 + 2 * PATH) * (DESTINATION + 2)-1-:DESTINATION+2];
    always_ff @(posedge clk) begin
        begun <= 1'b1;
        if (!begun) model_leaf <= '0;
        else if (leaf_write && {destination8, path8} == watch_leaf) model_leaf <= weight8;
        if (!begun) model_total <= '0;
        else if (total_write && destination9 == watch_total) model_total <= new_total9;
        sent <= {sent[(12 + 2 * PATH) * (DESTINATION + 2)-1:0], enters, in_update, in_destination};
    end
`ifdef FORMAL_ORDER
    // Nothing is lost or doubled: what enters leaves in order, after exactly the latency.
    always_comb begin
        assume (reset == !begun);
        if (begun) assert (out_valid == due[DESTINATION+1]);
        if (begun && out_valid) assert ({out_update, out_destination} == due[DESTINATION:0]);
    end
`else
    // Leaves and totals: each operation sees what all operations before it have left.
    always_comb begin
        assume (!reset && begun == !clearing);
        if (!begun) assume (!valid8 && !valid9 && !last_leaf_written && !last_total_written && watched_leaf == '0 && watched_total == '0);
        else begin
            assert (watched_leaf == model_leaf);
            assert ({destination8, path8} != watch_leaf || (last_leaf_written && last_leaf == watch_leaf) || stored_leaf == model_leaf);
            assert (!last_leaf_written || last_leaf != watch_leaf || last_weight == model_leaf);
            assert (!valid8 || {destination8, path8} != watch_leaf || old8 == model_leaf);
            assert (watched_total == model_total);
            assert (destination9 != watch_total || (last_total_written && last_destination == watch_total) || stored_total == model_total);
            assert (!last_total_written || last_destination != watch_total || last_total == model_total);
            assert (!valid9 || destination9 != watch_total || total9 == model_total);
        end
    end
`endif
`endif
endmodule
