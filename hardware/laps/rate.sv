// The rate of each flow: `Rates` of the crate `hardware` says what an acknowledgement does.
//
// Latency: 46 clocks from `in_valid` to `out_valid`, in order; 41 of them divide.
// Initiation interval: 1, of one flow or of many.
// Hazards: a flow is read in the clock in which the operation before may write it, which is forwarded. `line`, `floor` and
// `to_share` may change only while nothing is under way. A flow must be opened before it is acknowledged. Instants wrap after 80
// hours, in which the unit must be reset.
module laps_rate #(
    parameter int unsigned FLOW = 10
) (
    input  logic            clk,
    input  logic            reset,
    // Bits per second.
    input  logic [39:0]     line,
    input  logic [39:0]     floor,
    // A decrease ends at the share of the line that the delay tells.
    input  logic            to_share,

    input  logic            in_valid,
    // The flow begins; otherwise it is acknowledged.
    input  logic            in_open,
    input  logic [FLOW-1:0] in_flow,
    // Ticks.
    input  logic [47:0]     in_now,
    input  logic [23:0]     in_fastest,
    input  logic [23:0]     in_slowest,
    input  logic [23:0]     in_threshold,

    output logic            out_valid,
    output logic [FLOW-1:0] out_flow,
    output logic [39:0]     out_current
);
    localparam int unsigned ENTRY = 40 + 40 + 3 + 48 + 48;
    localparam int unsigned BEFORE = 44;

    // Clocks 1 and 2: line x threshold. Clocks 3 to 43: by the fastest delay.
    logic [63:0] product1, product2;
    logic [23:0] fastest1, fastest2;
    logic [39:0] share43, share44;
    always_ff @(posedge clk) begin
        product1 <= line * in_threshold;
        product2 <= product1;
        fastest1 <= in_fastest;
        fastest2 <= fastest1;
        share44 <= to_share ? share43 : '0;
    end
    laps_divider #(.DIVISOR(24), .QUOTIENT(40)) divider (
        .clk, .dividend(product2), .divisor(fastest2), .quotient(share43)
    );

    // What goes beside it.
    logic [BEFORE:1] valids;
    logic [FLOW-1:0] flow43, flow44;
    logic            open44, congested44;
    logic [47:0]     now44, after_cut44, after_rise44;
    logic [47:0]     now43;
    logic [23:0]     slowest43, threshold43;
    logic            open43, congested43;
    laps_delay #(.WIDTH(FLOW + 2 + 48 + 48), .CLOCKS(BEFORE - 1)) beside (
        .clk,
        .d({in_flow, in_open, in_fastest > in_threshold, in_now, in_slowest, in_threshold}),
        .q({flow43, open43, congested43, now43, slowest43, threshold43})
    );
    always_ff @(posedge clk) begin
        valids <= reset ? '0 : {valids[BEFORE-1:1], in_valid};
        flow44 <= flow43;
        open44 <= open43;
        congested44 <= congested43;
        now44 <= now43;
        after_cut44 <= now43 + {23'b0, slowest43, 1'b0};
        after_rise44 <= now43 + {23'b0, threshold43, 1'b0};
    end

    // Clock 44: the flow as it was is there, and what becomes of it.
    logic [ENTRY-1:0] stored, entry, changed, last_entry;
    logic             last, write;
    logic [FLOW-1:0]  last_flow;
    logic [39:0]      current, expected;
    logic [2:0]       stage;
    logic [47:0]      next_increase, next_decrease;
    laps_ram #(.WIDTH(ENTRY), .ADDRESS(FLOW)) flows (
        .clk,
        .write,
        .write_address(flow44),
        .write_data(changed),
        .read_address(flow43),
        .read_data(stored)
`ifdef FORMAL
        ,
        .watch('0),
        .watched()
`endif
    );
    assign entry = last && last_flow == flow44 ? last_entry : stored;
    assign {current, expected, stage, next_increase, next_decrease} = entry;

    logic        cuts, rises, doubles, beyond;
    logic [39:0] half, cut, aim;
    logic [40:0] twice, middle;
    assign cuts = congested44 && now44 >= next_decrease;
    assign rises = !congested44 && now44 >= next_increase;
    assign half = {1'b0, current[39:1]};
    assign doubles = stage >= 3'd5;
    assign twice = {expected, 1'b0};
    assign beyond = twice > {1'b0, line};
    always_comb begin
        // The largest of half the rate, the floor, and the share if that is below the rate.
        cut = half > floor ? half : floor;
        if (share44 >= current) cut = current > floor ? current : floor;
        else if (share44 > cut) cut = share44;
        aim = !doubles ? expected : beyond ? line : twice[39:0];
        middle = {1'b0, current} + {1'b0, aim};
        changed = entry;
        if (open44) changed = {line, line, 3'b0, 96'b0};
        else if (cuts) changed = {cut, current, 3'b0, next_increase, after_cut44};
        else if (rises) changed = {middle[40:1], aim, stage == 3'd6 ? stage : stage + 3'd1, after_rise44, next_decrease};
    end
    assign write = valids[BEFORE] && !reset;

    logic            valid45;
    logic [FLOW-1:0] flow45;
    always_ff @(posedge clk) begin
        last <= write;
        last_flow <= flow44;
        last_entry <= changed;
        valid45 <= write;
        flow45 <= flow44;
        out_valid <= valid45 && !reset;
        out_flow <= flow45;
        out_current <= last_entry[ENTRY-1-:40];
    end
endmodule
