// Test support: builders of small valid pods, so that a test states only the fields that matter to it.

export interface PodParts {
  readonly name?: string
  readonly spec?: object
  readonly container?: object
  readonly volumes?: readonly object[]
}

/** One container, one claim mounted as `data`. */
export const aPod = ({ name = 'db-0', spec = {}, container = {}, volumes = [aClaimVolume] }: PodParts = {}) => ({
  metadata: { name, namespace: 'shop' },
  spec: { containers: [{ name: 'db', image: 'postgres:17', ...container }], volumes, ...spec },
})

export const aClaimVolume = { name: 'data', persistentVolumeClaim: { claimName: 'db-data' } }

export const anEphemeralVolume = (spec: object = {}, metadata: object = {}) => ({
  name: 'scratch',
  ephemeral: {
    volumeClaimTemplate: {
      metadata,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    },
  },
})
