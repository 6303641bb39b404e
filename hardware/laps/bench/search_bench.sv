// The search table as the tests drive it. Fields are from the lowest bit up, as `crates/cosim/tests/circuits/search.rs` has them.
module laps_search_bench #(
    parameter int unsigned SEARCH = 4,
    parameter int unsigned DESTINATION = 4
) (
    input  logic         clk,
    input  logic [127:0] stimulus,
    output logic [95:0]  response
);
    logic                   ready, out_valid, out_found;
    logic [DESTINATION-1:0] out_destination;
    laps_search #(.SEARCH(SEARCH), .DESTINATION(DESTINATION)) dut (
        .clk,
        .reset(stimulus[0]),
        .ready,
        .write(stimulus[1]),
        .write_way(stimulus[2]),
        .write_up(stimulus[3]),
        .in_valid(stimulus[4]),
        .write_destination(stimulus[16+:DESTINATION]),
        .write_address(stimulus[32+:32]),
        .in_address(stimulus[64+:32]),
        .out_valid,
        .out_found,
        .out_destination
    );
    assign response = {64'b0, 16'(out_destination), 13'b0, ready, out_found, out_valid};
endmodule
