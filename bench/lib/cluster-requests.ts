// Sends requests on several connections, and counts the objects of a collection.
import { get } from 'node:https'
import type { Endpoint } from './http-connection.ts'
import { numberedRequest, openAll, type RequestText } from './load-role.ts'

const CONNECTIONS = 32

/** Sends requests on several connections and waits for all responses. */
export async function sendAll(endpoint: Endpoint, requests: readonly RequestText[]): Promise<void> {
  const failures: Error[] = []
  const connections = await openAll(endpoint, CONNECTIONS, (error) => failures.push(error))
  let next = 0
  try {
    await Promise.all(
      connections.map(async (connection) => {
        while (next < requests.length) {
          const request = requests[next++]!
          const { status } = await new Promise<{ status: number }>((resolve, reject) => {
            if (failures[0]) reject(failures[0])
            connection.send(numberedRequest(request)(0), resolve)
          })
          if (status >= 300) throw new Error(`${request.method} ${request.path}: ${status}`)
        }
      }),
    )
  } finally {
    for (const connection of connections) connection.close()
  }
}

/** Returns the number of objects of a collection. */
export async function countObjects({ port, ca, cert, key }: Endpoint, path: string): Promise<number> {
  const body = await new Promise<string>((resolve, reject) => {
    get({ host: '127.0.0.1', port, ca, cert, key, path: `${path}?limit=1` }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    }).on('error', reject)
  })
  const { items, metadata } = JSON.parse(body)
  return (items?.length ?? 0) + (metadata.remainingItemCount ?? 0)
}
