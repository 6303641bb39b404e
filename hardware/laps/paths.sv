// What is known of each path, and which is to be probed. `Paths` of the crate `hardware` says what each operation does.
//
// Operations: MEASURED (a packet or probe came back), TOLD (by the host: up or down, and a delay), LOOK (before a choice: the four
// paths from `in_path` on) and SWEEP (an instant long past is moved up, so that it does not wrap). Each that changes a delay
// leaves as an update for the chooser; a LOOK that finds a silent path leaves as one of that path, with `out_probe`.
//
// Latency: 2 clocks from `in_valid` to `out_valid`, which is high for changed delays only.
// Initiation interval: 1, operations mixed as they come; each sees exactly those before it.
// Hazards: a bank is read in the clock in which the operation before may write it: each forwards its last write. After `reset`
// all paths are down, in 2^(DESTINATION + PATH - 2) clocks with `in_ready` low.
module laps_paths #(
    // Paths of a destination are 2^PATH, at least 8.
    parameter int unsigned PATH = 3,
    parameter int unsigned DESTINATION = 10
) (
    input  logic                   clk,
    input  logic                   reset,
    // Ticks of 1,024 ps.
    input  logic [31:0]            now,

    output logic                   in_ready,
    input  logic                   in_valid,
    // 0 MEASURED, 1 TOLD, 2 LOOK, 3 SWEEP.
    input  logic [1:0]             in_operation,
    input  logic [DESTINATION-1:0] in_destination,
    input  logic [PATH-1:0]        in_path,
    input  logic                   in_up,
    input  logic [23:0]            in_delay,

    output logic                   out_valid,
    output logic                   out_probe,
    output logic [DESTINATION-1:0] out_destination,
    output logic [PATH-1:0]        out_path,
    output logic                   out_up,
    output logic [23:0]            out_delay
);
    localparam logic [1:0] MEASURED = 0, TOLD = 1, LOOK = 2, SWEEP = 3;
    // A bank has the paths whose two low bits are its number.
    localparam int unsigned ADDRESS = DESTINATION + PATH - 2;
    // measured, up, due, real.
    localparam int unsigned ENTRY = 58;

    logic               clearing;
    logic [ADDRESS-1:0] clear_address;
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

    // Clock 1: the banks are read. What does not depend on them is made meanwhile.
    logic                   valid;
    logic [1:0]             operation;
    logic [DESTINATION-1:0] destination;
    logic [PATH-1:0]        path;
    logic                   up;
    logic [23:0]            delay;
    logic [31:0]            time1, due1, old1;
    always_ff @(posedge clk) begin
        valid <= in_valid && in_ready && !reset;
        operation <= in_operation;
        destination <= in_destination;
        path <= in_path;
        up <= in_up;
        delay <= in_delay;
        time1 <= now;
        due1 <= now + {7'b0, in_delay, 1'b0};
        old1 <= now - 32'h2000_0000;
    end

    // Clock 2: the banks' entries, and what each would become.
    logic [3:0]      silent, writes;
    logic [4*24-1:0] doubled;
    logic [3:0]      ups;
    generate
        for (genvar b = 0; b < 4; b++) begin : bank
            logic [PATH-3:0]    row, row1;
            logic [ENTRY-1:0]   stored, entry, changed, last_entry;
            logic [ADDRESS-1:0] address1, last_address;
            logic               last, old;
            logic [31:0]        late, since, probe_due;
            // Of four paths from `in_path` on, that of this bank is a row further if its number is lower.
            assign row = in_path[PATH-1:2] + {{(PATH - 3) {1'b0}}, in_operation == LOOK && b < in_path[1:0]};
            assign address1 = {destination, row1};
            laps_ram #(.WIDTH(ENTRY), .ADDRESS(ADDRESS)) entries (
                .clk,
                .write(clearing || writes[b]),
                .write_address(clearing ? clear_address : address1),
                .write_data(clearing ? '0 : changed),
                .read_address({in_destination, row}),
                .read_data(stored)
            );
            assign entry = last && last_address == address1 ? last_entry : stored;
            assign late = entry[55:24] - time1;
            assign silent[b] = entry[56] && late[31];
            assign doubled[24*b+:24] = entry[23] ? '1 : {entry[22:0], 1'b0};
            assign probe_due = time1 + {7'b0, doubled[24*b+:24], 1'b0};
            assign ups[b] = entry[56];
            // How far `due` is before what counts as old.
            assign since = old1 - entry[55:24];
            assign old = late[31] && !since[31] && since != '0;
            always_comb begin
                case (operation)
                    MEASURED: changed = {1'b1, entry[56], due1, delay};
                    TOLD: changed = {1'b0, up, due1, delay};
                    LOOK: changed = {1'b0, entry[56], probe_due, doubled[24*b+:24]};
                    default: changed = {entry[57:56], old1, entry[23:0]};
                endcase
            end
            // The silent one that is first from `path` on.
            logic [3:0] earlier;
            assign earlier = ~(4'b1111 << (2'(b) - path[1:0]));
            logic [3:0] turned;
            assign turned = 4'({silent, silent} >> path[1:0]);
            assign writes[b] = valid && (operation == LOOK ? silent[b] && (turned & earlier) == '0
                                       : path[1:0] == b && (operation != SWEEP || old));
            always_ff @(posedge clk) begin
                row1 <= row;
                last <= writes[b];
                last_address <= address1;
                last_entry <= changed;
            end
        end
    endgenerate

    // Of a LOOK, which bank it is, from `path` on.
    logic [1:0] found;
    always_comb begin
        found = path[1:0];
        for (int i = 0; i < 4; i++) begin
            if (operation == LOOK && writes[i]) found = 2'(i);
        end
    end

    always_ff @(posedge clk) begin
        out_valid <= valid && !reset && operation != SWEEP && (operation != LOOK || writes != '0);
        out_probe <= operation == LOOK;
        out_destination <= destination;
        // Of the next row if its number is lower.
        out_path <= {path[PATH-1:2] + {{(PATH - 3) {1'b0}}, operation == LOOK && found < path[1:0]}, found};
        out_up <= operation == TOLD ? up : ups[found];
        out_delay <= operation == LOOK ? doubled[24*found+:24] : delay;
    end
endmodule
