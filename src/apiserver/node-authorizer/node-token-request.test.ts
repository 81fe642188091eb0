import { describe, expect, it } from 'vitest'
import { nodeUser } from './node-identity.ts'
import { nodeTokenProblem } from './node-token-request.ts'

const POD = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }
const problemOf = (boundObjectRef: object | undefined, podNode?: string, user = nodeUser('n1')) =>
  nodeTokenProblem(user, { spec: { audiences: [], ...(boundObjectRef ? { boundObjectRef } : {}) } }, podNode)

describe('the token request of a node', () => {
  it('SYS-19 must be bound to a pod on the node, with its uid', () => {
    expect(problemOf(POD, 'n1')).toBeUndefined()
    expect(problemOf(undefined)).toBe('node requested token not bound to a pod')
    expect(problemOf({ ...POD, kind: 'Secret' })).toBe('node requested token not bound to a pod')
    expect(problemOf({ ...POD, uid: undefined }, 'n1')).toBe('node requested token with a pod binding without a uid')
    const otherNode = 'node requested token bound to a pod scheduled on a different node'
    expect(problemOf(POD, 'n2')).toBe(otherNode)
    expect(problemOf(POD)).toBe(otherNode)
  })

  it('SYS-19 of another user is not limited', () => {
    expect(problemOf(undefined, undefined, { name: 'ann', groups: [] })).toBeUndefined()
  })
})
