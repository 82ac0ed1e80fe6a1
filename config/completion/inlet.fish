# Completion of inlet for fish.
function __inlet_offer
    set -l current (commandline -ct)
    set -l option (string match -r -- '^--[^=]+=' "$current")
    set -l offered (inlet completion fish -- (commandline -opc)[2..-1] "$current" 2>/dev/null)
    switch "$offered[1]"
        case :file
            set offered (__fish_complete_path (string replace -- "$option" '' "$current"))
        case :folder
            set offered (__fish_complete_directories "$current")
    end
    for offer in $offered
        printf '%s\n' "$option$offer"
    end
end
complete -c inlet -f -a '(__inlet_offer)'
