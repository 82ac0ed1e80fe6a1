/** Faults of the check, the hand-off command and the webhook, a part of `FAULT_CODES`. */
export const HANDOFF_FAULTS = {
  CHECK_REFUSED: {
    verdict: "quarantine",
    happened: "The check refused the transfer",
    advice:
      "The content was not delivered. Discard it, retry it to check it again, or release it to deliver it without another check.",
  },
  CHECK_CHANGED: {
    verdict: "quarantine",
    happened: "The check changed the content",
    advice:
      "The content was not delivered. A check must only read: correct its command, then retry the transfer.",
  },
  CHECK_FAILED: {
    verdict: "retry",
    happened: "The check gave no verdict",
    advice:
      "Nothing was delivered, and the content is kept. Correct the command, or the program that it needs. Inlet runs the check again by itself; inlet retry runs it at once.",
  },
  COMMAND_FAILED: {
    verdict: "retry",
    happened: "The hand-off command failed",
    advice:
      "The folder stays delivered. inlet show prints the last output of the command. inlet retry runs the command again at once, even after the last attempt.",
  },
  WEBHOOK_FAILED: {
    verdict: "retry",
    happened: "The webhook did not accept the call",
    advice:
      "The folder stays delivered. Check the receiver. inlet retry calls it again at once, even after the last attempt.",
  },
} as const;
