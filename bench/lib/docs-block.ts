// Replaces generated blocks in a hand-written document. Only the text between the markers changes:
//   <!-- bench:api -->
//   …
//   <!-- bench:end -->

const END = '<!-- bench:end -->'
const beginOf = (name: string): string => `<!-- bench:${name} -->`

export function replaceBlock(text: string, name: string, body: string): string {
  const begin = beginOf(name)
  const beginPosition = text.indexOf(begin)
  if (beginPosition < 0)
    throw new Error(
      `The document has no block for the figures of "${name}": put ${begin} and ${END} where they belong.`,
    )
  const bodyPosition = beginPosition + begin.length
  const end = text.indexOf(END, bodyPosition)
  const nextPosition = text.indexOf('<!-- bench:', bodyPosition)
  if (end < 0 || nextPosition < end)
    throw new Error(`The block that begins with ${begin} has no end: put ${END} after it.`)
  return `${text.slice(0, bodyPosition)}\n${body.trim()}\n${text.slice(end)}`
}
