// The registers, by AXI4-Lite with words of 32 bits: `hardware/registers.csv` lists them, `hardware/commands.csv` the commands.
//
// A read or write of an address without a register answers DECERR; a write to one that is read only, one of part of a word, and one
// of a command that does not exist answer SLVERR, and nothing changes.
//
// Latency: 1 clock from address (and data) to the answer. Initiation interval: 2 clocks.
// Hazards: none. One command at a time: a write of COMMAND or its arguments waits while one is under way. Counters wrap.
module laps_registers #(
    parameter int unsigned SIZES = 0,
    parameter int unsigned COUNTERS = 10
) (
    input  logic                clk,
    input  logic                reset,

    input  logic                awvalid,
    output logic                awready,
    input  logic [11:0]         awaddr,
    input  logic                wvalid,
    output logic                wready,
    input  logic [31:0]         wdata,
    input  logic [3:0]          wstrb,
    output logic                bvalid,
    input  logic                bready,
    output logic [1:0]          bresp,
    input  logic                arvalid,
    output logic                arready,
    input  logic [11:0]         araddr,
    output logic                rvalid,
    input  logic                rready,
    output logic [31:0]         rdata,
    output logic [1:0]          rresp,

    output logic                answer_probes,
    output logic                answer_data,
    output logic                to_share,
    output logic                choose,
    output logic [31:0]         clock_step,
    output logic [39:0]         line,
    output logic [39:0]         floor,

    // A command stays until it is done.
    output logic                command_valid,
    input  logic                command_ready,
    output logic [3:0]          command,
    output logic [31:0]         argument0,
    output logic [31:0]         argument1,
    output logic [31:0]         argument2,

    input  logic [63:0]         clock,
    input  logic [39:0]         rate,
    input  logic [15:0]         rings_free,
    // One more, each.
    input  logic [COUNTERS-1:0] counts
);
    localparam logic [1:0] OKAY = 2'b00, SLVERR = 2'b10, DECERR = 2'b11;
    localparam int unsigned FIRST_COUNTER = 'h20, LAST_COMMAND = 10;

    logic [31:0]            clock_high;
    logic [3:0]             control;
    logic [32*COUNTERS-1:0] counters;
    assign {choose, to_share, answer_data, answer_probes} = control;

    // Of words.
    logic [9:0] write_word, read_word;
    logic       writes, reads, counts_there;
    assign write_word = awaddr[11:2];
    assign read_word = araddr[11:2];
    assign counts_there = read_word >= 10'(FIRST_COUNTER) && read_word < 10'(FIRST_COUNTER + COUNTERS);
    assign writes = awvalid && wvalid && !bvalid && !(command_valid && write_word >= 10'h08 && write_word <= 10'h0b);
    assign reads = arvalid && !rvalid;
    assign awready = writes;
    assign wready = writes;
    assign arready = reads;

    logic there, writable;
    always_comb begin
        there = write_word <= 10'h06 || (write_word >= 10'h08 && write_word <= 10'h12)
            || (write_word >= 10'(FIRST_COUNTER) && write_word < 10'(FIRST_COUNTER + COUNTERS));
        case (write_word)
            10'h03, 10'h04, 10'h08, 10'h09, 10'h0a, 10'h0c, 10'h0d, 10'h0e, 10'h0f: writable = 1'b1;
            10'h0b: writable = wdata != '0 && wdata <= LAST_COMMAND;
            default: writable = 1'b0;
        endcase
    end

    always_ff @(posedge clk) begin
        if (bvalid && bready) bvalid <= 1'b0;
        if (command_valid && command_ready) command_valid <= 1'b0;
        if (writes) begin
            bvalid <= 1'b1;
            bresp <= !there || awaddr[1:0] != '0 ? DECERR : writable && wstrb == '1 ? OKAY : SLVERR;
            if (writable && wstrb == '1 && awaddr[1:0] == '0) begin
                case (write_word)
                    10'h03: control <= wdata[3:0];
                    10'h04: clock_step <= wdata;
                    10'h08: argument0 <= wdata;
                    10'h09: argument1 <= wdata;
                    10'h0a: argument2 <= wdata;
                    10'h0b: begin
                        command_valid <= 1'b1;
                        command <= wdata[3:0];
                    end
                    10'h0c: line[31:0] <= wdata;
                    10'h0d: line[39:32] <= wdata[7:0];
                    10'h0e: floor[31:0] <= wdata;
                    default: floor[39:32] <= wdata[7:0];
                endcase
            end
        end

        if (rvalid && rready) rvalid <= 1'b0;
        if (reads) begin
            rvalid <= 1'b1;
            rresp <= OKAY;
            rdata <= '0;
            case (read_word)
                10'h00: rdata <= 32'h4c415053;
                10'h01: rdata <= 32'd1;
                10'h02: rdata <= SIZES;
                10'h03: rdata <= {28'b0, control};
                10'h04: rdata <= clock_step;
                10'h05: begin
                    rdata <= clock[31:0];
                    clock_high <= clock[63:32];
                end
                10'h06: rdata <= clock_high;
                10'h08: rdata <= argument0;
                10'h09: rdata <= argument1;
                10'h0a: rdata <= argument2;
                10'h0b: rdata <= command_valid ? {28'b0, command} : '0;
                10'h0c: rdata <= line[31:0];
                10'h0d: rdata <= {24'b0, line[39:32]};
                10'h0e: rdata <= floor[31:0];
                10'h0f: rdata <= {24'b0, floor[39:32]};
                10'h10: rdata <= rate[31:0];
                10'h11: rdata <= {24'b0, rate[39:32]};
                10'h12: rdata <= {16'b0, rings_free};
                default: begin
                    if (counts_there) rdata <= counters[32*(read_word-10'(FIRST_COUNTER))+:32];
                    else rresp <= DECERR;
                end
            endcase
            if (araddr[1:0] != '0) begin
                rdata <= '0;
                rresp <= DECERR;
            end
        end

        for (int i = 0; i < COUNTERS; i++) counters[32*i+:32] <= counters[32*i+:32] + {31'b0, counts[i]};

        if (reset) begin
            {bvalid, rvalid, command_valid} <= '0;
            control <= '0;
            clock_step <= 32'd4000 << 16;
            clock_high <= '0;
            {argument0, argument1, argument2} <= '0;
            command <= '0;
            line <= 40'd100_000_000_000;
            floor <= 40'd1_000_000_000;
            counters <= '0;
        end
    end

`ifdef FORMAL
    // AXI: what is answered stays until it is taken; an answer for each request, and none without.
    logic       begun, was_b, was_r;
    logic [1:0] was_bresp, was_rresp;
    logic [31:0] was_rdata;
    initial begun = 1'b0;
    always_ff @(posedge clk) begin
        begun <= 1'b1;
        was_b <= begun && bvalid && !bready;
        was_r <= begun && rvalid && !rready;
        was_bresp <= bresp;
        was_rresp <= rresp;
        was_rdata <= rdata;
    end
    always_comb begin
        assume (reset == !begun);
        if (begun) begin
            assert (!was_b || (bvalid && bresp == was_bresp));
            assert (!was_r || (rvalid && rresp == was_rresp && rdata == was_rdata));
            assert (!(bvalid && awready) && !(rvalid && arready));
        end
    end
`endif
endmodule
