// One level of the trees of sums: half of what is left of the paths is ruled out, or a sum is changed.
//
// A node holds the sum of the weights in its left subtree. A choice goes right where its target is not below that sum, and the
// sum is taken off its target. An update, whose path is known, adds its difference where its path goes left.
//
// Latency: 2 clocks. Initiation interval: 1, choices and updates mixed.
// Hazards: an operation reads its node in the clock in which the one before may write it; `last` forwards that write. Older
// writes are in the memory.
module laps_chooser_level #(
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 10,
    // The root's is 0.
    parameter int unsigned LEVEL = 0
) (
    input  logic                   clk,
    // All nodes are set to 0, one a clock; no operation may be in the level then.
    input  logic                   clear,
    input  logic [DESTINATION+PATH-1:0] clear_address,

    input  logic                   in_valid,
    input  logic                   in_update,
    input  logic [DESTINATION-1:0] in_destination,
    // Of a choice, the bits that the levels above have found; the others are 0.
    input  logic [PATH-1:0]        in_path,
    // Of a choice its target; of an update its difference, with a sign.
    input  logic [PATH+23:0]       in_amount,

    output logic                   out_valid,
    output logic                   out_update,
    output logic [DESTINATION-1:0] out_destination,
    output logic [PATH-1:0]        out_path,
    output logic [PATH+23:0]       out_amount
);
    // Of half of the paths below the node.
    localparam int unsigned SUM = 24 + PATH - 1 - LEVEL;
    localparam int unsigned ADDRESS = DESTINATION + LEVEL;
    localparam int unsigned BIT = PATH - 1 - LEVEL;

    logic [ADDRESS-1:0] read_address;
    generate
        if (LEVEL == 0) begin : root
            assign read_address = in_destination;
        end else begin : below
            assign read_address = {in_destination, in_path[PATH-1-:LEVEL]};
        end
    endgenerate

    logic                   valid, update;
    logic [DESTINATION-1:0] destination;
    logic [PATH-1:0]        path;
    logic [PATH+23:0]       amount;
    logic [ADDRESS-1:0]     address;
    logic [SUM-1:0]         stored;

    logic                   last;
    logic [ADDRESS-1:0]     last_address;
    logic [SUM-1:0]         last_sum;

    logic [SUM-1:0]         sum, changed;
    logic [PATH+24:0]       left_over;
    logic                   right, write;

    assign sum = last && last_address == address ? last_sum : stored;
    assign changed = sum + amount[SUM-1:0];
    // The top bit is the borrow.
    assign left_over = {1'b0, amount} - {{(PATH + 25 - SUM) {1'b0}}, sum};
    assign right = update ? path[BIT] : !left_over[PATH+24];
    assign write = valid && update && !path[BIT];

    laps_ram #(.WIDTH(SUM), .ADDRESS(ADDRESS)) sums (
        .clk,
        .write(clear || write),
        .write_address(clear ? clear_address[ADDRESS-1:0] : address),
        .write_data(clear ? '0 : changed),
        .read_address,
        .read_data(stored)
`ifdef FORMAL
        ,
        .watch,
        .watched
`endif
    );

    always_ff @(posedge clk) begin
        valid <= in_valid;
        update <= in_update;
        destination <= in_destination;
        path <= in_path;
        amount <= in_amount;
        address <= read_address;

        last <= write;
        last_address <= address;
        last_sum <= changed;

        out_valid <= valid;
        out_update <= update;
        out_destination <= destination;
        out_path <= path;
        if (!update) out_path[BIT] <= right;
        out_amount <= !update && right ? left_over[PATH+23:0] : amount;
    end

`ifdef FORMAL
    // Whatever address is watched: each operation sees the sum as all operations before it have left it.
    (* anyconst *) logic [ADDRESS-1:0] watch;
    logic [SUM-1:0] watched, model;
    logic           begun;
    initial begun = 1'b0;
    always_ff @(posedge clk) begin
        begun <= 1'b1;
        if (!begun) model <= '0;
        else if (write && address == watch) model <= changed;
    end
    always_comb begin
        assume (begun == !clear);
        if (!begun) assume (!valid && !last && watched == '0);
        else begin
            assert (watched == model);
            assert (address != watch || (last && last_address == watch) || stored == model);
            assert (!last || last_address != watch || last_sum == model);
            assert (!valid || address != watch || sum == model);
        end
    end
`endif
endmodule
