// Replaces generated blocks in a hand-written document. Only the text between the markers changes:
//   <!-- bench:api -->
//   …
//   <!-- bench:end -->

const END = '<!-- bench:end -->'
const beginOf = (name: string): string => `<!-- bench:${name} -->`

export function replaceBlock(text: string, name: string, body: string): string {
  const begin = beginOf(name)
  const at = text.indexOf(begin)
  if (at < 0)
    throw new Error(
      `The document has no block for the figures of "${name}": put ${begin} and ${END} where they belong.`,
    )
  const from = at + begin.length
  const end = text.indexOf(END, from)
  const next = text.indexOf('<!-- bench:', from)
  if (end < 0 || next < end) throw new Error(`The block that begins with ${begin} has no end: put ${END} after it.`)
  return `${text.slice(0, from)}\n${body.trim()}\n${text.slice(end)}`
}
