/** The default scenario: some transfers, each of which shows another case. */
import type { Scenario } from "./scenario.ts";

const MAILBOX = "orders@example.com";
const MEBIBYTE = 1024 * 1024;

export const sampleScenario: Scenario = {
  transfers: [
    {
      from: "anna@supplier.example",
      fromName: "Anna Schmidt",
      to: [MAILBOX],
      cc: ["accounting@example.com"],
      subject: "Order 4711: confirmation and delivery note",
      message:
        "Good morning,\n\nplease find the papers of order 4711 attached.\n\nKind regards\nAnna Schmidt\n",
      password: "Sunny+Harbour%42",
      files: [
        { name: "confirmation.txt", text: "Order 4711 is confirmed.\n" },
        {
          name: "delivery-note.csv",
          text: "position;article;quantity\n1;Bracket M8;250\n2;Bolt M8 x 40;1000\n",
        },
      ],
    },
    {
      from: "scanner@supplier.example",
      to: [MAILBOX],
      subject: "Scans of May",
      files: Array.from({ length: 60 }, (_, index) => ({
        name: `scan-${String(index + 1).padStart(2, "0")}.pdf`,
        generate: { bytes: 20_000 },
      })),
    },
    {
      from: "drawings@engineering.example",
      to: [MAILBOX],
      bcc: ["archive@example.com"],
      subject: "Drawings of the new hall",
      files: [{ name: "drawings.tar", generate: { bytes: 64 * MEBIBYTE } }],
    },
    {
      from: "newsletter@fair.example",
      to: [MAILBOX],
      subject: "Your ticket",
      passwordMode: "NONE",
      files: [{ name: "ticket.txt", text: "Hall 7, gate 3\n" }],
    },
    {
      from: "büro@lieferant.example",
      to: [MAILBOX],
      subject: "Größen und Maße",
      files: [
        { name: "Maße & Größen 2025.txt", text: "Länge: 12 m\n" },
        { name: "CON.txt", text: "A name that some systems reserve\n" },
        { name: 'what: is "this"?.txt', text: "A name that some systems refuse\n" },
        { name: "../outside.txt", text: "A name with a path\n" },
        { name: "見積書.txt", text: "合計 1000\n" },
      ],
    },
    {
      from: "legacy@partner.example",
      to: [MAILBOX],
      subject: "Stock list",
      algorithm: "none",
      files: [{ name: "stock.csv", text: "article;stock\nBracket M8;40\n" }],
    },
    {
      from: "anna@supplier.example",
      to: [MAILBOX],
      subject: "Invoice that was tampered with",
      password: "Sunny+Harbour%42",
      files: [
        {
          name: "invoice.txt",
          text: "Please pay to another account.\n",
          csvChecksum: "wrong",
          listChecksum: "wrong",
        },
      ],
    },
    {
      from: "drawings@engineering.example",
      to: [MAILBOX],
      subject: "Drawings that are still being scanned for viruses",
      processingSeconds: 20,
      files: [{ name: "corrections.txt", text: "Gate 3 is 20 cm wider.\n" }],
    },
    {
      from: "newsletter@fair.example",
      to: [MAILBOX],
      subject: "Last year's ticket",
      expiresInSeconds: -3 * 86_400,
      files: [{ name: "ticket.txt", text: "Hall 5, gate 1\n" }],
    },
  ],
};
