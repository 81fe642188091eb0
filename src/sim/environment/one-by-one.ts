// A client of a server without transactions, like other Kubernetes API servers: every write of a commit is a separate
// request, and other events can occur between two requests.
import type { Client } from '../../client/client.ts'
import { commitOneByOne } from '../../client/commit-one-by-one.ts'

export const createNonAtomicClient = (client: Client): Client => ({
  ...client,
  commit: (writes, options) => commitOneByOne(client, writes, options),
  commitsAtomically: async () => false,
})
