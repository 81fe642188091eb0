import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { intentOf } from '../../volumes/provisioning-intent.ts'

describe('intentOf', () => {
  it('PROV-12 derives the finalizer from the names of the provisioner and the instance', () => {
    expect(intentOf('disks.example.com')).toBe('provisioning.stowage.dev/disks.example.com')
    expect(intentOf('disks.example.com', 'node-1')).toBe('provisioning.stowage.dev/disks.example.com.node-1')
    expect(intentOf('gluster.org/gluster-volume')).toBe('provisioning.stowage.dev/gluster.org-gluster-volume')
  })

  it('PROV-12 returns valid and distinct finalizers for provisioner names without slashes', () => {
    const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/)
    const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.'))
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(intentOf(a).split('/')[1]).toMatch(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/)
        expect(intentOf(a) === intentOf(b)).toBe(a === b)
      }),
    )
  })
})
