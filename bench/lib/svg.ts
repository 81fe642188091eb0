// What all drawings share: colours that follow the reader's light or dark page, and text that cannot break out.

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
