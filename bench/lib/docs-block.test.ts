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
  it('is replaced, and nothing else', () => {
    expect(replaceBlock(PAGE, 'api', 'new\n')).toBe(PAGE.replace('old', 'new'))
  })

  it('may be empty before', () => {
    expect(replaceBlock(PAGE, 'quota', 'figures')).toContain('<!-- bench:quota -->\nfigures\n<!-- bench:end -->\n')
  })

  it('is the same when it is written again', () => {
    const once = replaceBlock(PAGE, 'api', 'new')
    expect(replaceBlock(once, 'api', 'new')).toBe(once)
  })

  it('without a place is refused, and says what to put there', () => {
    expect(() => replaceBlock(PAGE, 'pods', 'x')).toThrow('put <!-- bench:pods --> and <!-- bench:end -->')
  })

  it('without an end does not swallow the next', () => {
    const open = PAGE.replace('old\n<!-- bench:end -->', 'old')
    expect(() => replaceBlock(open, 'api', 'x')).toThrow('has no end')
  })
})
