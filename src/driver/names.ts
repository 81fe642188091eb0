// The names under which the local driver is known to the cluster.
export const DRIVER_NAME = 'local.csi.stowage.dev'
/** The topology key for a volume's node. */
export const TOPOLOGY_KEY = `${DRIVER_NAME}/node`
