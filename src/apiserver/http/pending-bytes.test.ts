import { describe, expect, it } from 'vitest'
import { createPendingBytes } from './pending-bytes.ts'

describe('the limit of pending bytes', () => {
  const closedNames: string[] = []
  const response = (name: string) => ({ destroy: () => closedNames.push(name) })

  it('SYS-19 closes the response that has waited the longest when the responses together exceed it', () => {
    const [a, b, c] = ['a', 'b', 'c'].map(response) as [
      ReturnType<typeof response>,
      ReturnType<typeof response>,
      ReturnType<typeof response>,
    ]
    const pendingBytes = createPendingBytes(100, () => {})
    pendingBytes.update(a, 40, 'ann')
    pendingBytes.update(b, 40, 'ann')
    pendingBytes.update(a, 0, 'ann') // the client of a has read everything
    pendingBytes.update(a, 20, 'ann')
    pendingBytes.update(c, 60, 'ann')
    expect(closedNames).toEqual(['b'])
    expect(pendingBytes.total).toBe(80)
    pendingBytes.remove(c)
    expect(pendingBytes.total).toBe(20)
  })

  it('SYS-19 closes responses of the user with the most bytes, even if a response of another user has waited longer', () => {
    closedNames.length = 0
    const pendingBytes = createPendingBytes(100, () => {})
    pendingBytes.update(response('slow'), 30, 'ann')
    for (const name of ['flood-1', 'flood-2', 'flood-3']) pendingBytes.update(response(name), 30, 'bob')
    expect(closedNames).toEqual(['flood-1'])
  })

  it('SYS-19 does not close the only response, even if it alone exceeds the limit', () => {
    closedNames.length = 0
    const pendingBytes = createPendingBytes(100, () => {})
    pendingBytes.update(response('large'), 1_000, 'ann')
    expect(closedNames).toEqual([])
  })
})
