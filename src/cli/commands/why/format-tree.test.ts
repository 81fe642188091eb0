import { describe, expect, it } from 'vitest'
import type { Diagnosis } from '../../../diagnosis/index.ts'
import { formatTree } from './format-tree.ts'

const node = (name: string): Diagnosis => ({
  subject: { kind: 'Node', name },
  state: 'failed',
  reason: 'NotEnoughSpace',
  message: 'too small',
  fixes: [{ message: 'add storage', losesData: false }],
})
const claim: Diagnosis = {
  subject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' },
  state: 'waiting',
  reason: 'Pending',
  message: 'no node',
  fixes: [{ message: 'recreate it', command: 'kubectl delete pvc data', losesData: true }],
  children: [node('a'), node('b')],
}

describe('formatTree', () => {
  it('PLUS-1 prints causes as branches, and prints once the fixes that consecutive causes share', () => {
    expect(formatTree(claim, { hasColors: false })).toBe(
      '… pvc/data: no node [Pending]\n' +
        '│ → LOSES DATA: recreate it: kubectl delete pvc data\n' +
        '├─✖ node/a: too small [NotEnoughSpace]\n' +
        '└─✖ node/b: too small [NotEnoughSpace]\n' +
        '    → add storage\n',
    )
  })

  it('PLUS-1 colors the symbols only if colors are on', () => {
    expect(formatTree(claim, { hasColors: true })).toContain('└─\u001b[31m✖\u001b[0m node/b')
    expect(formatTree(claim, { hasColors: false })).not.toContain('\u001b')
  })

  it('PLUS-1 bounds the number of printed causes, and prints how many are omitted', () => {
    const nodes = Array.from({ length: 13 }, (_, index) => node(`n${index}`))
    const lines = formatTree({ ...claim, children: nodes }, { hasColors: false })
      .trimEnd()
      .split('\n')
    expect(lines.at(-1)).toBe('└─… and 3 more, with -o json')
  })
})
