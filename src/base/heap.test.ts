import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { HEAP_GROWTH_FLAG } from './heap.ts'

it('SYS-20 the flag that limits the growth of the heap exists in this release of Node.js', () => {
  expect(execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })).toContain(`${HEAP_GROWTH_FLAG} `)
})
