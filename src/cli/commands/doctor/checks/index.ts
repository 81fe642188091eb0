// The checks of `stowage doctor`, in the order of its output. To add one, create a file with a Check and add it here.
import type { Check } from '../check.ts'
import { servedApis } from './apis.ts'
import { capacityObjects } from './capacity-objects.ts'
import { certificates } from './certificates.ts'
import { clocks } from './clocks.ts'
import { csiNodes } from './csi-nodes.ts'
import { disk } from './disk.ts'
import { driverCapabilities } from './driver-capabilities.ts'
import { finalizers } from './finalizers.ts'
import { leases } from './leases.ts'
import { lostVolumePolicy } from './lost-volume-policy.ts'
import { placement } from './placement.ts'
import { rights } from './rights.ts'
import { topology } from './topology.ts'

export const CHECKS: readonly Check[] = [
  servedApis,
  rights,
  driverCapabilities,
  csiNodes,
  topology,
  capacityObjects,
  placement,
  lostVolumePolicy,
  finalizers,
  leases,
  clocks,
  certificates,
  disk,
]
