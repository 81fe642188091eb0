import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { troubleOf } from './events.ts'

const aPod = (name: string, namespace: string) => ({ metadata: { name, namespace } }) as Pod
const told = (usedBy: readonly Pod[]) =>
  troubleOf('data', 'left', aPod('mine', 'shop'), { is: 'elsewhere', usedBy }).message

describe('a volume that is elsewhere', () => {
  it('SYS-18 is explained in the words people search for, without names of other namespaces', () => {
    expect(told([])).toBe(
      'Multi-Attach error for volume "data" Volume is already exclusively attached to one node and can\'t be attached to another',
    )
    expect(told([aPod('a', 'shop'), aPod('b', 'shop'), aPod('secret', 'vault')])).toBe(
      'Multi-Attach error for volume "data" Volume is already used by pod(s) a, b and 1 pod(s) in different namespaces',
    )
    expect(told([aPod('secret', 'vault')])).toBe(
      'Multi-Attach error for volume "data" Volume is already used by 1 pod(s) in different namespaces',
    )
  })
})
