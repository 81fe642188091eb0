import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { attachProblem } from './events.ts'

const aPod = (name: string, namespace: string) => ({ metadata: { name, namespace } }) as Pod
const messageFor = (users: readonly Pod[]) =>
  attachProblem('data', 'left', aPod('web', 'shop'), { is: 'multi-attach', users }).message

describe('attachProblem', () => {
  it('uses the Kubernetes wording and does not name pods in other namespaces', () => {
    expect(messageFor([])).toBe(
      'Multi-Attach error for volume "data" Volume is already exclusively attached to one node and can\'t be attached to another',
    )
    expect(messageFor([aPod('a', 'shop'), aPod('b', 'shop'), aPod('secret', 'vault')])).toBe(
      'Multi-Attach error for volume "data" Volume is already used by pod(s) a, b and 1 pod(s) in different namespaces',
    )
    expect(messageFor([aPod('secret', 'vault')])).toBe(
      'Multi-Attach error for volume "data" Volume is already used by 1 pod(s) in different namespaces',
    )
  })
})
