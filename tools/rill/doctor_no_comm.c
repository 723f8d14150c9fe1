/* rill doctor in a build without rill_comm. */
#include "doctor.h"

void doctor_communication(struct doctor *doctor, const struct doctor_devices *devices) { (void)doctor, (void)devices; }

void doctor_mpi(struct doctor *doctor) { DOCTOR_OK(doctor, "mpi", "engine", "rill was built without rill_comm"); }
