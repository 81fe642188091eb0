// Tests the replacement of generated blocks in documents.
import { describe, expect, it } from 'vitest'
import { replaceBlock } from './docs-block.ts'

const PAGE = `# Performance

By hand.

<!-- bench:api -->
old
<!-- bench:end -->

More by hand.

<!-- bench:quota -->
<!-- bench:end -->
`

describe('a generated block in a document', () => {
  it('is replaced without changing other text', () => {
    expect(replaceBlock(PAGE, 'api', 'new\n')).toBe(PAGE.replace('old', 'new'))
  })

  it('may be empty', () => {
    expect(replaceBlock(PAGE, 'quota', 'figures')).toContain('<!-- bench:quota -->\nfigures\n<!-- bench:end -->\n')
  })

  it('does not change when it is written twice', () => {
    const replacedPage = replaceBlock(PAGE, 'api', 'new')
    expect(replaceBlock(replacedPage, 'api', 'new')).toBe(replacedPage)
  })

  it('causes an error that names the markers to add if it is missing', () => {
    expect(() => replaceBlock(PAGE, 'pods', 'x')).toThrow('put <!-- bench:pods --> and <!-- bench:end -->')
  })

  it('causes an error if it has no end', () => {
    const openPage = PAGE.replace('old\n<!-- bench:end -->', 'old')
    expect(() => replaceBlock(openPage, 'api', 'x')).toThrow('has no end')
  })
})
