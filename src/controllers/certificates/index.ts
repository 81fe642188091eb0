// Entry point of the certificate controller, which approves and signs CertificateSigningRequests.
export { createCertificateController, type Requester } from './certificate-controller.ts'
export type { NodeCertificateRight } from './plan-request.ts'
export { createTokenCleaner } from './token-cleaner.ts'
