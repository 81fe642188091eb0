import { describe, expect, it } from 'vitest'
import { attacherLease, provisionerLease, resizerLease, schedulerLeases, sidecarLease } from './lease-names.ts'

describe('lease names', () => {
  it.each([
    ['hostpath.csi.k8s.io', 'hostpath-csi-k8s-io'],
    ['example.com/nfs', 'example-com-nfs'],
    ['Vendor_Driver.', 'Vendor-Driver-X'],
  ])('SYS-8 for %s equal those of the upstream sidecars, and `stowage sidecar` has its own', (driver, name) => {
    expect(provisionerLease(driver)).toBe(name)
    expect(resizerLease(driver)).toBe(`external-resizer-${name}`)
    expect(resizerLease(driver, 'node-1')).toBe(`external-resizer-${name}-node-1`)
    expect(attacherLease(driver)).toBe(`external-attacher-leader-${name}`)
    expect(sidecarLease(driver)).toBe(`stowage-sidecar-${name}`)
  })

  it('SYS-8 for a scheduler are its sorted names, with kube-scheduler instead of default-scheduler', () => {
    expect(schedulerLeases(['stowage-scheduler', 'default-scheduler'])).toEqual(['kube-scheduler', 'stowage-scheduler'])
    expect(schedulerLeases(['team-b', 'team-a', 'team-b'])).toEqual(['team-a', 'team-b'])
  })
})
