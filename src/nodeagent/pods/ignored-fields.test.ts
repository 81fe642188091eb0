import { describe, expect, it } from 'vitest'
import { findIgnoredFields } from './ignored-fields.ts'

describe('findIgnoredFields', () => {
  it('returns the paths of the fields that have no effect on commands that run on the machine', () => {
    const spec = {
      hostAliases: [{ ip: '192.0.2.1' }],
      securityContext: { runAsUser: 1, seLinuxOptions: { level: 's0' } },
      initContainers: [{ name: 'i', securityContext: { capabilities: { drop: ['ALL'] }, privileged: true } }],
      containers: [{ name: 'main', resources: { limits: { memory: '1Gi' }, requests: { memory: '1Gi' } } }],
    }
    expect(findIgnoredFields({ metadata: { name: 'p' }, spec } as never)).toEqual([
      'spec.hostAliases',
      'spec.securityContext.seLinuxOptions',
      'spec.initContainers[i].securityContext.capabilities',
      'spec.containers[main].resources.limits',
    ])
    expect(findIgnoredFields({ metadata: { name: 'p' }, spec: { containers: [{ name: 'main' }] } })).toEqual([])
  })
})
