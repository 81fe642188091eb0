// Configures how the node agents of `stowage up` serve logs and commands: on the loopback interface, with a certificate that the
// server issues directly. On a shared store they listen on the machine's address, so that the other servers can reach them.
import { generateKeyPairSync } from 'node:crypto'
import { encodeDnsName } from '../../../api/certification-request.ts'
import { encodeName } from '../../../api/distinguished-name.ts'
import { nodeServingName } from '../../../api/kinds/node/node-certificates.ts'
import type { Pki } from '../../../apiserver/index.ts'
import type { Clock } from '../../../base/clock.ts'
import type { StreamOptions } from '../../../nodeagent/index.ts'
import type { NodeNames } from './node-names.ts'

const LOOPBACK = '127.0.0.1'
const LIFETIME_MS = 365 * 24 * 60 * 60 * 1_000
const BACKDATE_MS = 5 * 60 * 1_000

export interface LocalStreamOptions {
  readonly nodeName: string
  readonly pki: Pick<Pki, 'caCert' | 'signCertificate'>
  readonly isStoreShared: boolean
  readonly clock: Clock
}

export const localStreams = ({ nodeName, pki, isStoreShared, clock }: LocalStreamOptions): StreamOptions => ({
  ...(isStoreShared ? {} : { host: LOOPBACK }),
  ca: pki.caCert,
  async issueCertificate() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const nowMs = clock.nowMs()
    const cert = pki.signCertificate({
      use: 'server',
      subject: encodeName({ commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] }),
      publicKey,
      alternativeNames: [encodeDnsName(nodeServingName(nodeName))],
      canEncipherKeys: false,
      notBeforeMs: nowMs - BACKDATE_MS,
      notAfterMs: nowMs + LIFETIME_MS,
    })
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
  },
})

/** Returns the address of a node whose agent runs in this process, or undefined. */
export function findLocalAddress(nodeName: string, count: number, nameOf: NodeNames): string | undefined {
  for (let number = 1; number <= count; number++) if (nameOf(number) === nodeName) return LOOPBACK
  return undefined
}
