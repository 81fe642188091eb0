// Shared by all drawings: colours that follow the light or dark page, and text that is escaped, measured and wrapped.

export const STYLE = [
  'text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}',
  '.page{fill:#ffffff;stroke:#d1d9e0}.title{font-weight:600;font-size:13px}.small{font-size:10px;fill:#59636e}',
  '.good{fill:#1f883d}.bad{fill:#cf222e}.plain{fill:#5b8fd6}.mark{stroke:#1f2328;stroke-width:1.5}',
  '.frame{fill:none;stroke:#d1d9e0}.curve{fill:none;stroke:#5b8fd6;stroke-width:2}',
  '.ideal{fill:none;stroke:#818b98;stroke-dasharray:4 3}.dot{fill:#5b8fd6}',
  '@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117;stroke:#3d444d}.small{fill:#9198a1}',
  '.good{fill:#3fb950}.bad{fill:#f85149}.plain,.dot{fill:#79b0f2}.curve{stroke:#79b0f2}.mark{stroke:#e6edf3}',
  '.frame{stroke:#3d444d}.ideal{stroke:#7d8590}}',
].join('')

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (character) => ESCAPES[character]!)

/** The class of a text decides its font and colour. */
export type TextClass = 'title' | 'small' | 'label' | 'value' | 'bad'

/** Height of a line of text in pixels. */
export const lineHeight = (textClass: string): number => (textClass === 'small' ? 12 : textClass === 'title' ? 16 : 14)

const EM: Readonly<Record<string, number>> = { title: 13 * 1.1, small: 10 }
const EM_DEFAULT = 12

// Approximate advance widths in em of DejaVu Sans, a wide font.
const WIDTHS: readonly (readonly [characters: RegExp, em: number])[] = [
  [/[ijl|'’]/, 0.28],
  [/[ ,.;:/\-()ft]/, 0.39],
  [/[mwMW%≥≤×#…→]/, 0.97],
  [/[A-Z]/, 0.7],
]
const WIDTH_DEFAULT = 0.64

/** An estimate: the font depends on the viewer. */
export function textWidth(text: string, textClass: string): number {
  const em = EM[textClass] ?? EM_DEFAULT
  let width = 0
  for (const character of text) {
    width += WIDTHS.find(([characters]) => characters.test(character))?.[1] ?? WIDTH_DEFAULT
  }
  return width * em
}

/** Breaks text at spaces into lines that fit. A word that is too long gets a separate line. */
export function wrapText(text: string, textClass: TextClass, widthMax: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const joinedLine = lines.length === 0 ? word : `${lines.at(-1)} ${word}`
    if (lines.length > 0 && textWidth(joinedLine, textClass) <= widthMax) lines[lines.length - 1] = joinedLine
    else lines.push(word)
  }
  return lines
}
