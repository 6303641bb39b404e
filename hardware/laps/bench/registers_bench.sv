// The registers as the tests drive them. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/registers.rs` has them.
module laps_registers_bench (
    input  logic         clk,
    input  logic [223:0] stimulus,
    output logic [319:0] response
);
    logic        awready, wready, bvalid, arready, rvalid, answer_probes, answer_data, to_share, choose, command_valid;
    logic [1:0]  bresp, rresp;
    logic [31:0] rdata, clock_step, argument0, argument1, argument2;
    logic [39:0] line, floor;
    logic [3:0]  command;
    laps_registers #(.SIZES(32'h0e0a0a03)) dut (
        .clk,
        .reset(stimulus[0]),
        .awvalid(stimulus[1]),
        .wvalid(stimulus[2]),
        .bready(stimulus[3]),
        .arvalid(stimulus[4]),
        .rready(stimulus[5]),
        .command_ready(stimulus[6]),
        .wstrb(stimulus[11:8]),
        .awaddr(stimulus[27:16]),
        .wdata(stimulus[63:32]),
        .araddr(stimulus[75:64]),
        .counts(stimulus[89:80]),
        .clock(stimulus[159:96]),
        .rate(stimulus[199:160]),
        .rings_free(stimulus[215:200]),
        .*
    );
    assign response = {
        24'b0, floor, 24'b0, line, clock_step, argument2, argument1, argument0, rdata,
        14'b0, choose, to_share, answer_data, answer_probes, command, command_valid, rresp, rvalid, arready, bresp, bvalid, wready, awready
    };
endmodule
