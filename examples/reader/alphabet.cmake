# Writes the lines of OUT, the characters that a network knows: `character` of the metadata in REPORT, which import wrote.
file(READ "${REPORT}" report)
string(JSON characters GET "${report}" metadata character)
file(WRITE "${OUT}" "${characters}")
