/** Faults of notifications, a part of `FAULT_CODES`. */
export const NOTIFY_FAULTS = {
  MAIL_UNREACHABLE: {
    verdict: "retry",
    happened: "The mail server could not be reached",
    advice: "Check notify.mail.server, its port and the network. The daemon tries again by itself.",
  },
  MAIL_TLS_REFUSED: {
    verdict: "wait",
    happened: "No trusted TLS connection to the mail server could be established",
    advice:
      "Check the server's certificate and notify.mail.tls; for a private certificate authority set notify.mail.ca.",
  },
  MAIL_LOGIN_REFUSED: {
    verdict: "wait",
    happened: "The mail server refused the login",
    advice:
      "Check notify.mail.user and notify.mail.password, and whether the server offers a login at this port.",
  },
  MAIL_DEFERRED: {
    verdict: "retry",
    happened: "The mail server does not accept the mail now",
    advice: "The daemon tries again by itself; if it persists, ask the mail server's administrator.",
  },
  MAIL_REFUSED: {
    verdict: "wait",
    happened: "The mail server refused the mail",
    advice:
      "Check notify.mail.from and notify.mail.to, and whether the server accepts mail from this machine.",
  },
  MAIL_RECIPIENTS_REFUSED: {
    verdict: "wait",
    happened: "The mail server refused some recipients of a mail, and the others have it",
    advice: "Check notify.mail.to. Later mails go to all recipients; this one is not sent again.",
  },
  NOTIFY_WEBHOOK_FAILED: {
    verdict: "retry",
    happened: "The webhook for notifications did not accept the call",
    advice: "Check notify.webhook and its receiver. The daemon tries again by itself.",
  },
} as const;
