// The path state as the tests drive it, with what is written into the banks beside the results. Fields are from the lowest bit
// up, as `crates/cosim/tests/paths.rs` has them.
module laps_paths_bench #(
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 4
) (
    input  logic         clk,
    input  logic [95:0]  stimulus,
    output logic [127:0] response
);
    logic        reset, in_valid, in_up;
    logic [1:0]  in_operation;
    logic [15:0] in_destination, in_path;
    logic [23:0] in_delay;
    logic [31:0] now;
    assign {now, in_delay, in_up, in_path, in_destination, in_operation, in_valid, reset} = stimulus[92:0];

    logic                   in_ready, out_valid, out_probe, out_up;
    logic [DESTINATION-1:0] out_destination;
    logic [PATH-1:0]        out_path;
    logic [23:0]            out_delay;
    laps_paths #(.PATH(PATH), .DESTINATION(DESTINATION)) dut (
        .clk,
        .reset,
        .now,
        .in_ready,
        .in_valid,
        .in_operation,
        .in_destination(in_destination[DESTINATION-1:0]),
        .in_path(in_path[PATH-1:0]),
        .in_up,
        .in_delay,
        .out_valid,
        .out_probe,
        .out_destination,
        .out_path,
        .out_up,
        .out_delay
    );

    logic [57:0] entry, written;
    logic        write;
    always_comb begin
        entry = dut.bank[0].changed;
        if (dut.writes[1]) entry = dut.bank[1].changed;
        if (dut.writes[2]) entry = dut.bank[2].changed;
        if (dut.writes[3]) entry = dut.bank[3].changed;
    end
    always_ff @(posedge clk) begin
        write <= dut.writes != '0;
        written <= entry;
    end

    assign response = {9'b0, written, write, out_delay, out_up, 16'(out_path), 16'(out_destination), out_probe, out_valid, in_ready};
endmodule
