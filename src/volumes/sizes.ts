// Reads the four sizes of a claim and its volume, as quantities, and compares them. A size that is not set is 0, except for
// allocatedStorage.
//
//   requestedStorage   claim.spec.resources.requests     requested by the user
//   allocatedStorage   claim.status.allocatedResources   requested from the driver by the last expansion
//   claimCapacity      claim.status.capacity             available to pods
//   volumeCapacity     volume.spec.capacity              provided by the driver
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { compareQuantities } from '../api/quantity.ts'

type Claim = Readonly<PersistentVolumeClaim>

export const requestedStorage = ({ spec }: Claim): string => spec?.resources?.requests?.storage ?? '0'
export const claimCapacity = ({ status }: Claim): string => status?.capacity?.storage ?? '0'
export const volumeCapacity = ({ spec }: Readonly<PersistentVolume>): string => spec?.capacity?.storage ?? '0'

/** Returns undefined if no expansion was started, or the last one was cancelled. */
export const allocatedStorage = ({ status }: Claim): string | undefined => status?.allocatedResources?.storage

export const isLess = (a: string, b: string): boolean => compareQuantities(a, b) < 0
export const maxQuantity = (a: string, b: string): string => (isLess(a, b) ? b : a)
