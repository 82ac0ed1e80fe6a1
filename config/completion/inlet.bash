# Completion of inlet for bash. For one user, in ~/.bashrc: source <(inlet completion bash)
_inlet() {
  # `npm run docs` writes them: a word, where it can stand, its description, and what follows it.
  # generated: words
  local table='
--version	/.*	output the version number
--help	/.*	display help for command
run	/	run the daemon, which mirrors every configured mailbox into the inbox
--config	/run/.*|/once/.*|/status/.*|/list/.*|/show/.*|/route/.*|/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/poll/.*|/pause/.*|/resume/.*|/adopt/.*|/anew/.*|/doctor/.*|/notify/test/.*|/config/check/.*|/config/show/.*|/verify/.*|/verify-address/.*|/history/.*|/api/.*	the configuration file (default: INLET_CONFIG, else ~/.config/inlet/inlet.yaml, else /etc/inlet/inlet.yaml)	:file
--log-level	/run/.*	how much to log (default: log.level of the configuration, else info)	debug info warn error
once	/	poll every mailbox once, deliver its transfers, and exit
--log-level	/once/.*	how much to log (default: log.level of the configuration, else warn)	debug info warn error
--json	/once/.*	print the resulting state of each transfer as JSON
--dry-run	/once/.*	only read the lists, and print what would be downloaded, where to, and which passwords are missing
--unit	/once/.*|/doctor/.*|/notify/test/.*|/config/check/.*|/verify-address/.*	use the user, credentials, configuration and folders of this systemd unit; needs root	:any
status	/	show mailboxes and transfers as they are now
--json	/status/.*	print the status as JSON
--watch	/status/.*	show it on the whole screen, and redraw every second, until q or Ctrl-C
--health	/status/.*	only check the daemon, and exit with 0 or 1; ready (the default): it can do its work; alive: it is not stuck	ready alive
list	/	list all known transfers with their states
--mailbox	/list/.*|/history/.*	only for this mailbox; * stands for any text	:any
--sender	/list/.*|/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/history/.*	only from this sender; * stands for any text	:any
--state	/list/.*|/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/history/.*	only in this state	discovered downloading waiting checking delivering delivered picked-up quarantined gone
--reason	/list/.*|/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/history/.*	only with this reason, such as password or CHECKSUM_MISMATCH	:any
--text	/list/.*|/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/history/.*	only with this text in tracking-id, sender, mailbox, subject, message or folder	:any
--since	/list/.*|/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/history/.*	only changed since then: an age (12h, 7d, 4w) or a date (2026-03-01)	:any
--limit	/list/.*	only this many, the newest first (default: 50; all with --json)	:any
--json	/list/.*	print one JSON object per line
show	/	show everything known about one transfer
--mailbox	/show/.*	the mailbox, if several received it	:any
--json	/show/.*	print the transfer as JSON
route	/	explain which route a transfer takes
--mailbox	/route/.*	the mailbox, if there are several	:any
--sender	/route/.*	compare with this sender	:any
--subject	/route/.*	compare with this subject	:any
--recipient	/route/.*	compare with this recipient; may be repeated	:any
--file	/route/.*	compare with a file of this name; may be repeated	:any
--size	/route/.*	compare with this size of all files together, such as 2MB	:any
--json	/route/.*	print the comparison as JSON
password	/	supply the password of a waiting transfer
--mailbox	/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*	the mailbox, if several received it; with --all a pattern	:any
--all	/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*	all transfers that match the other options, instead of single ones
--yes	/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*	do not ask for confirmation
--no-wait	/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/poll/.*	do not wait for the outcome
--timeout	/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/poll/.*	how long to wait for the outcome, such as 30s or 1h (default: 5m)	:any
--json	/password/.*|/retry/.*|/release/.*|/discard/.*|/redeliver/.*|/poll/.*|/pause/.*|/resume/.*	print the outcome as JSON: one object for one tracking-id or mailbox, otherwise an array
--password-file	/password/.*|/api/info/.*|/api/files/.*|/api/checksums/.*|/api/get/.*|/api/zip/.*|/api/eml/.*|/api/password/check/.*	read the password from a file, or from standard input for -	:file
--once-more	/password/.*	supply no password, but allow one more attempt for a transfer that has none left
retry	/	retry a waiting or quarantined transfer now
release	/	deliver a transfer that is held or in quarantine, on your responsibility
discard	/	give up a transfer for good
redeliver	/	deliver a transfer once more
poll	/	poll a mailbox now, or all of them
pause	/	stop polling a mailbox, or all of them, until you resume it
resume	/	end the pause of a mailbox, or of all of them
adopt	/	leave out what may have been delivered before
--mailbox	/adopt/.*|/anew/.*	only for this mailbox: its name or address	:any
--yes	/adopt/.*|/anew/.*	do it; without it, only say what would happen
anew	/	deliver what may have been delivered before
demo	/	watch Inlet work, with a simulated service and a temporary folder
--exit	/demo/.*	exit when all transfers are settled, instead of running until Ctrl-C
init	/	ask a few questions and write a configuration
--config	/init/.*	the file to write (default: INLET_CONFIG, else /etc/inlet/inlet.yaml, or ~/.config/inlet/inlet.yaml if you are not root)	:file
--base-url	/init/.*|/api/.*	the service'\''s address: the part before /api	:any
--ca	/init/.*	a PEM file with the private certificate authority of the service	:file
--client-id-file	/init/.*	read the client id from a file, or from standard input for -	:file
--mailbox	/init/.*	an address whose transfers to download; may be repeated	:any
--inbox	/init/.*	the folder in which finished transfers appear	:folder
--state	/init/.*	the folder for tokens and supplied passwords (default: STATE_DIRECTORY, else /var/lib/inlet for root, else inlet in XDG_STATE_HOME or ~/.local/state)	:folder
--password-file	/init/.*	the password of this sender'\''s transfers; may be repeated	:any
--no-test	/init/.*	do not try the answers on the service
--force	/init/.*	replace an existing file, and keep the old one beside it
--yes	/init/.*	ask no questions
--json	/init/.*	print the written files as JSON
doctor	/	check everything the daemon depends on, and give advice
--json	/doctor/.*	print the findings as JSON
notify	/	test the notifications
test	/notify/	send a test message through each entry of notify
--to	/notify/test/.*	only this entry of notify, counted from 1	:any
--json	/notify/test/.*	print the results as JSON
help	/notify/|/config/|/api/password/|/api/languages/|/api/verification/|/api/	display help for command
config	/	check the configuration, show its effective values, or print its schema
check	/config/	check the configuration
--no-secrets	/config/check/.*	do not read secrets
--json	/config/check/.*|/verify-address/.*	print the result as JSON
show	/config/	show the effective values, and the source of each
--json	/config/show/.*	print the values as JSON
schema	/config/	print the JSON schema of the configuration, for editors and other tools
verify	/	re-hash delivered folders against their manifests	:folder
--allow	/verify/.*	a file name to permit, such as one that a consumer adds; may be repeated	:any
--json	/verify/.*	print every folder with its files as JSON
verify-address	/	verify a mailbox'\''s address with a mailed code
--code-file	/verify-address/.*	read a code that was already mailed, from a file, or from standard input for -; requests no mail	:file
history	/	list past transfers: when, from whom, and how they ended
--until	/history/.*	only until then; a date includes the whole day	:any
--changes	/history/.*	list every change of state, not only the last of each transfer
--actions	/history/.*	list what operators did, and changes of the configuration
--limit	/history/.*	at most this many, the newest first (default: 50, with --json all)	:any
--json	/history/.*	print the entries as JSON
completion	/	print a completion script for your shell	bash zsh fish
version	/	print the version of Inlet and Node, and the platform
--json	/version/.*	print it as JSON
simulate	/	run a simulated transfer service for experiments
--port	/simulate/.*	the port to listen on (0: any free port)	:any
--host	/simulate/.*	the address to listen on	:any
--scenario	/simulate/.*	its transfers and faults (default: a few samples)	:file
--quiet	/simulate/.*	do not log each request
api	/	call single operations of the service
--mailbox	/api/.*	use the service that the configuration names for this mailbox	:any
--json	/api/.*	print data as JSON
received	/api/	list the transfers that an address has received
--page	/api/received/.*|/api/sent/.*|/api/sent-legacy/.*	only this page, counted from 1 (default: all)	:any
--page-size	/api/received/.*|/api/sent/.*|/api/sent-legacy/.*	entries per page, at most 100	:any
--active	/api/received/.*|/api/sent/.*	only transfers that can be downloaded
--inactive	/api/received/.*|/api/sent/.*	only transfers that can no longer be downloaded
--fields	/api/received/.*|/api/sent/.*	the fields to request, such as '\''status(state),transfer(files)'\'', or '\''default'\'' for those that the service chooses; with --json, '\''raw'\'' has what the service sent, without links and secrets	:any
sent	/api/	list the transfers that an address has sent
sent-legacy	/api/	list sent transfers with the deprecated operation of versions 1.x
info	/api/	show the size of a transfer and the algorithm of its checksums
--no-password	/api/info/.*|/api/files/.*|/api/checksums/.*|/api/get/.*|/api/zip/.*|/api/eml/.*	send no password, for transfers that need none
files	/api/	list the files of a transfer
checksums	/api/	show the checksums file of a transfer, matched with its file list
--output	/api/checksums/.*	save the file itself, byte for byte	:file
get	/api/	download one file of a transfer, or all of them
--output	/api/get/.*	a file name for one file, or a folder (default: its own name, in the current folder)	:file
zip	/api/	download the files of a transfer as one ZIP
--output	/api/zip/.*	where to save it (default: TRANSFER-ID.zip)	:file
--include-checksum-file	/api/zip/.*	let the service add a list of checksums to the ZIP
--only	/api/zip/.*	only the files with these ids	:any
--except	/api/zip/.*	all files except those with these ids	:any
eml	/api/	download the confidential message with its attachments
--output	/api/eml/.*	where to save it (default: TRANSFER-ID.eml)	:file
--threshold	/api/eml/.*	the largest size of the EML; larger attachments are left out	:any
password	/api/	generate and check transfer passwords, and list their rules
generate	/api/password/	let the service generate a password, and print it
check	/api/password/	list the rules that a password breaks
rules	/api/password/	list the rules that a transfer password must fulfil
languages	/api/	list and download language packs
list	/api/languages/	list the installed language packs
--major-version	/api/languages/list/.*	only packs of this major version	:any
show	/api/languages/	show one language pack
get	/api/languages/	download a file of a language pack
--output	/api/languages/get/.*	where to save it (default: its own name, in the current folder)	:file
status	/api/	show the interface versions that the service offers
client-id	/api/	let the service create a client id, and print it
verification	/api/	verify an address
status	/api/verification/	show whether an address is verified
mail-code	/api/verification/	let the service mail a code to an address
token	/api/verification/	obtain a token with the client id or a mailed code, and print it
--code	/api/verification/token/.*	ask for the mailed code on the terminal
--code-file	/api/verification/token/.*	read the mailed code from a file, or from standard input for -	:file
'
  # end of generated
  local place=/ argument= value= offers= typed word places description follows
  local current="${COMP_WORDS[COMP_CWORD]#=}"
  for typed in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    # Bash passes --option=value as three words.
    if [[ $typed == = ]]; then continue; fi
    if [[ -n $value && $typed != -* ]]; then value=; continue; fi
    value=
    while IFS=$'\t' read -r word places description follows; do
      [[ $word == "$typed" && $place =~ ^($places)$ ]] || continue
      if [[ $word == -* ]]; then value=$follows; else place+=$word/ argument=$follows; fi
      break
    done <<<"$table"
  done
  if [[ -n $value ]]; then
    offers=${value#:any}
  else
    if [[ $current != -* ]]; then offers=$argument; fi
    while IFS=$'\t' read -r word places description follows; do
      if [[ $word == -* && $current != -* ]]; then continue; fi
      if [[ $place =~ ^($places)$ ]]; then offers+=" $word"; fi
    done <<<"$table"
  fi
  case "$offers" in
    :file) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    :folder) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$offers" -- "$current"); return ;;
  esac
  compopt -o filenames 2>/dev/null
}
complete -F _inlet inlet
