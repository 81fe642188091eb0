// Formats object references in the form that kubectl accepts, with short names of kinds.

const SHORT_KINDS: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  VolumeAttachment: 'va',
  VolumeAttributesClass: 'vac',
  StorageClass: 'sc',
  Pod: 'pod',
  Node: 'node',
}

/** Returns for example `pvc/orders`. */
export const shortRef = (kind: string, name: string): string => `${SHORT_KINDS[kind] ?? kind}/${name}`
